"""What the backend under test serves: `pytest --backend gpu` has single precision alone."""

import numpy as np

from isometry._backend import current
from registry import real_of

SINGLE = (np.float32, np.complex64)


def served(dtypes):
    """Those of the dtypes in which the backend in force computes."""
    return [dtype for dtype in dtypes if current() == "cpu" or real_of(dtype) is np.float32]
