"""Reflections of an orthogonal or unitary matrix, by the core."""

import numpy as np

from isometry import _core
from isometry._arrays import Array, real_type


def arguments(w: Array, tol: float) -> dict[str, Array]:
    """vectors of the stack W (nb, n, n), with the sign of a real W, phases of a complex one."""
    nb, n = w.shape[:2]
    complex_, real = w.dtype.kind == "c", real_type(w.dtype)
    vectors, last = np.empty((nb, n, n - 1), w.dtype), np.empty((nb, n) if complex_ else nb, real)
    _core.householder_from_matrix(np.ascontiguousarray(w), vectors, last, tol)
    return {"vectors": vectors, "phases" if complex_ else "sign": last}
