"""What an error is measured between."""

import numpy as np
from numpy.typing import ArrayLike

from isometry import _check, _check_tasks
from isometry._arrays import Array, finite, taken_real


def pair(output: ArrayLike, target: ArrayLike, check_finite: bool) -> tuple[Array, Array]:
    """Both as float64 of one shape, which has entries."""
    check_finite = _check.flag("check_finite", check_finite)
    a, b = taken_real("output", output), taken_real("target", target)
    _check_tasks.alike(a.shape, b.shape)
    if check_finite:
        finite("output", a)
        finite("target", b)
    return a.astype(np.float64), b.astype(np.float64)
