"""The Hadamard transform of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isometry import _backend, _core, _threads
from isometry._arrays import Array, finite, ready, taken, writable
from isometry._objects.hadamard import of_rows
from isometry._rules import check
from isometry.gpu import _calls, _rows


def hadamard_transform(
    x: ArrayLike, scale: float = 1.0, *, out: Array | None = None, check_finite: bool = True
) -> Array:
    """Multiply every vector in the last axis by a Hadamard matrix, whose entries are +1 and -1.

    y = scale sqrt(n) H_n x, in Sylvester's order: for a power of two the matrix is that of `scipy.linalg.hadamard`.
    With scale = n ** -0.5 the transform is orthonormal, and for a power of two its own inverse.

    Parameters
    ----------
    x
        Shape (..., n), real or complex. n is a power of two, or p 2^k with p = 12, 20, 28, 36, 44, 52, ... of Paley's
        constructions. An `isometry.gpu.Array` inside `use_backend("gpu")`: the result is one too.
    scale
        A number that multiplies the result.
    out
        An array for the result, of the shape and dtype of the result, contiguous, apart from x. Large results take
        two to three times as long without it, since the system provides and clears their memory.
    check_finite
        Reject NaN and infinity in x and `scale`. To look at x takes as long as the transform of short rows.

    Returns
    -------
    numpy.ndarray
        Shape (..., n), `out` or a new array, of the dtype of x; integers become float64.

    Raises
    ------
    ValueError
        If there is no matrix of order n (the message names the nearest orders), or for NaN or infinity under
        `check_finite`, or if `out` does not fit.
    TypeError
        If x has an unsupported dtype, the scale is no real number, or `out` is no array of the dtype of the result.

    Notes
    -----
    n log2(n / p) + n p additions per row, in the first-level cache.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.hadamard_transform([1.0, 2.0, 3.0, 4.0])
    array([10., -2., -4.,  0.])
    """
    check_finite = check.flag("check_finite", check_finite)
    resident = out is None and _backend.serve(None) == "gpu" and _calls.resident(x)
    x, scale = taken("x", x), check.factor("scale", scale, check_finite)
    of_rows(x.shape)
    if resident:
        return _rows.hadamard_transform(x, scale)  # type: ignore[arg-type, return-value]
    if check_finite:
        finite("x", x)
    dtype = x.dtype.newbyteorder("=")
    if out is None:
        out = np.empty(x.shape, dtype)
    else:
        writable("out", out, x.shape, dtype)
    _core.hadamard_transform(ready(x, dtype), scale, False, out, _threads.get_num_threads())
    return out
