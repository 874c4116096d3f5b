"""Nearest orthogonal matrices and their gradients, by the kernels, for both faces."""

import numpy as np

from isometry import _core
from isometry._arrays import Array

# Up to this min(m, n) the kernels decompose the matrices, one per lane.
_SMALL = 8


def small(a: Array) -> bool:
    """Whether these matrices are decomposed: their gradients do not read W."""
    return min(a.shape[-2:]) <= _SMALL


def nearest(a: Array, special: bool, threads: int) -> Array:
    """W of matrices (nb, m, n)."""
    w = np.empty_like(a)
    _core.linalg_procrustes(a, special, w, threads)
    return w


def pulled(a: Array, w: Array, ct: Array, special: bool, threads: int) -> Array:
    """The gradient of matrices (nb, m, n) from W and its cotangent."""
    bar = np.empty_like(a)
    _core.linalg_procrustes_vjp(a, w, ct, special, bar, threads)
    return bar
