"""The two arrays that an error compares."""

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, all_finite, taken_real
from isometry._rules import check_tasks


def pair(output: ArrayLike, target: ArrayLike, check_finite: bool) -> tuple[Array, Array]:
    """Both as float64, of one shape that is not empty."""
    a, b = taken_real("output", output), taken_real("target", target)
    check_tasks.alike(a.shape, b.shape)
    all_finite(check_finite, output=a, target=b)
    return a.astype(np.float64), b.astype(np.float64)
