"""The distance of a matrix from orthonormal columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import all_finite, taken
from isometry._rules import check


def orthogonality_error(w: ArrayLike, *, check_finite: bool = True) -> Any:
    """Return the distance of a matrix from orthonormal columns, in units of rounding.

    e(W) = max|W^H W - I| / (n eps), n the number of columns and eps the machine epsilon of the dtype of w. Values of
    order 1 are as good as the dtype allows; every hard parametrisation of this package stays below 20.

    Parameters
    ----------
    w
        Shape (*, p, n), n >= 1.
    check_finite
        Reject NaN and infinity in w.

    Returns
    -------
    float64 or numpy.ndarray
        One value per matrix, shape (*).

    Raises
    ------
    ValueError
        If w has fewer than two axes or no column, or for NaN or infinity under `check_finite`.
    TypeError
        If w has an unsupported dtype, or check_finite is not a bool.

    Notes
    -----
    The product is formed in double precision, so that its rounding does not count for a float32 matrix. Costs 2
    p n^2 operations.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> float(iso.orthogonality_error(np.eye(3)))
    0.0
    """
    w = taken("w", w)
    check.columns("w", w.shape)
    all_finite(check_finite, w=w)
    n, eps = w.shape[-1], np.finfo(w.dtype).eps
    # A copy in C order, because other layouts change the order of summation.
    wide = np.array(w, np.result_type(w.dtype, np.float64), order="C")
    with np.errstate(over="ignore", invalid="ignore"):  # products of huge entries
        gram = np.conj(np.swapaxes(wide, -1, -2)) @ wide
        gap = np.abs(gram - np.eye(n)).max(axis=(-2, -1)) / (n * float(eps))
    lost = np.isnan(gap)
    if lost.any():  # products that are infinite, and cancel
        gap = np.where(lost & np.isfinite(wide).all((-2, -1)), np.inf, gap)[()]
    return gap
