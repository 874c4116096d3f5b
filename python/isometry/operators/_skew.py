"""Full skew matrices, packed."""

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, all_finite, taken
from isometry._objects._skew import not_skew
from isometry._rules import check, tolerance


def packed(a: ArrayLike, check_finite: bool) -> tuple[Array, Array | None]:
    """upper and, of a complex matrix, diagonal of a (*, n, n), after checking it."""
    a = taken("a", a)
    check.square("a", a.shape)
    all_finite(check_finite, a=a)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite where a is not skew
        defect, size = np.abs(a + np.conj(np.swapaxes(a, -1, -2))), np.abs(a).max((-2, -1), keepdims=True)
    if (defect > tolerance.skew(a.dtype.name) * size).any():
        not_skew()
    diagonal = np.diagonal(a, axis1=-2, axis2=-1).imag.copy() if a.dtype.kind == "c" else None
    return a[(..., *np.triu_indices(a.shape[-1], 1))], diagonal
