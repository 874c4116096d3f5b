"""The Cayley transform of full skew matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, gradient, taken
from isometry._rules import check
from isometry.operators import Cayley


def cayley(a: ArrayLike, *, check_finite: bool = True) -> Array:
    """(I + A)^{-1} (I - A) of skew-symmetric or skew-Hermitian matrices.

    Parameters
    ----------
    a
        Shape (*, n, n), A = -A^H, each matrix up to sqrt(eps) times its own largest entry.
    check_finite
        Reject NaN and infinity in a.

    Returns
    -------
    numpy.ndarray
        Shape (*, n, n), orthogonal or unitary.

    Raises
    ------
    ValueError
        If a is not square or not skew, or, under `check_finite`, for NaN or infinity.
    TypeError
        If a has an unsupported dtype.

    Notes
    -----
    W is as orthogonal as rounding allows for every size of A. Costs about n^3 multiply-adds.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.linalg.cayley([[0.0, 1.0], [-1.0, 0.0]])
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    return _operator(a, check_finite)[1].matrix(check_finite=False)


def cayley_vjp(a: ArrayLike, ct: ArrayLike, *, check_finite: bool = True) -> Array:
    """Return the gradient of `cayley` in a, along skew matrices, from the gradient in its result.

    Parameters
    ----------
    a
        As given to `cayley`.
    ct
        The cotangent, of the shape of a.
    check_finite
        Reject NaN and infinity in the arguments.

    Returns
    -------
    numpy.ndarray
        The gradient, a skew matrix in the shape of a: that of a function of skew matrices.

    Raises
    ------
    ValueError
        As for `cayley`, and if ct does not have the shape of a.
    TypeError
        As for `cayley`, and if ct is complex and a real.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.linalg.cayley_vjp([[0.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]])
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    own, operator = _operator(a, check_finite)
    grads = operator.matrix_vjp(ct, check_finite=check_finite)
    upper = grads["upper"]
    n = own.shape[-1]
    bar = np.zeros((*own.shape[:-2], n, n), upper.dtype)
    bar[(..., *np.triu_indices(n, 1))] = upper / 2
    bar = bar - np.conj(np.swapaxes(bar, -1, -2))
    if "diagonal" in grads:
        each = np.arange(n)
        bar[..., each, each] = 1j * grads["diagonal"]
    return gradient(bar, own.shape, own.dtype)


def _operator(a: ArrayLike, check_finite: bool) -> tuple[Array, Cayley]:
    own = taken("a", a)
    check.square("a", own.shape)
    return own, Cayley.from_skew(own, check_finite=check_finite)
