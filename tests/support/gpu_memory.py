"""Free memory of the GPU filled with large numbers: calls get it back, and what is read before it is written shows.

NaN would not do: compilers of shaders may assume that there is none.
"""

import numpy as np

from isometry.gpu import Array

LARGE = 1e15
#: Bytes of free memory are powers of two and three halves of them, from 256.
SIZES = [base << k for k in range(9) for base in (64, 96)]


def poison(each=4):
    """Make, fill and free a few arrays of every small size."""
    held = [Array(np.full(size, LARGE, np.float32)) for size in SIZES for _ in range(each)]
    del held
