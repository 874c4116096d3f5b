"""The QR factorisation, in LAPACK's storage and as two matrices."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isometry import _core, _threads
from isometry._arrays import Array, all_finite, common, gradient, stacked, taken
from isometry._rules import check_linalg
from isometry.linalg._reflectors import cotangent, householder_product, ormqr


def geqrf(a: ArrayLike, *, check_finite: bool = True) -> tuple[Array, Array]:
    """The QR factorisation A = Q R, with Q as a product of reflections, as torch.geqrf.

    Parameters
    ----------
    a
        Shape (*, m, n).
    check_finite
        Reject NaN and infinity in a.

    Returns
    -------
    a : numpy.ndarray
        Shape (*, m, n): R on and above the diagonal, the vectors of the reflections below it, which
        `householder_product` and `ormqr` take.
    tau : numpy.ndarray
        Shape (*, min(m, n)), H_j = I - tau_j v_j v_j^H. Zero for a column that is its own factor.

    Raises
    ------
    ValueError
        If a has fewer than two axes, or, under `check_finite`, for NaN or infinity.
    TypeError
        If a has an unsupported dtype.

    Notes
    -----
    LAPACK's conventions: the diagonal of R is real, of the sign opposite to that of the entry it replaces. Tiny and
    huge columns are scaled. Costs n^2 (m - n / 3) multiply-adds for m >= n; the batch is shared by the threads.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.linalg.geqrf([[3.0], [4.0]])
    (array([[-5. ],
           [ 0.5]]), array([1.6]))
    """
    own = taken("a", a)
    batch = check_linalg.matrices("a", own.shape)
    all_finite(check_finite, a=own)
    r, tau = _factors(stacked(own, 2, batch, own.dtype))
    return r.reshape(own.shape), tau.reshape(*batch, tau.shape[-1])


def geqrf_vjp(a: ArrayLike, ct: ArrayLike, tau_ct: ArrayLike, *, check_finite: bool = True) -> Array:
    """Return the gradient of `geqrf` in the matrices, from the gradients in both results.

    Parameters
    ----------
    a
        As given to `geqrf`.
    ct, tau_ct
        The cotangents, in the shapes of the results.
    check_finite
        Reject NaN and infinity in the arguments.

    Returns
    -------
    numpy.ndarray
        The gradient, in the shape of a.

    Raises
    ------
    ValueError
        As for `geqrf`, and if a cotangent does not have the shape of its result.
    TypeError
        As for `geqrf`, and if a cotangent is complex where a is real.

    Notes
    -----
    The gradient where no column is zero below the diagonal, and finite elsewhere, while the entries of a matrix span no
    more than the exponents of its type. It needs no inverse of R.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.linalg.geqrf_vjp([[3.0], [4.0]], [[1.0], [0.0]], [0.0])
    array([[-0.6],
           [-0.8]])
    """
    own = taken("a", a)
    batch = check_linalg.matrices("a", own.shape)
    all_finite(check_finite, a=own)
    k = min(own.shape[-2:])
    ct = cotangent("ct", ct, own.shape, own.dtype, check_finite)
    tau_ct = cotangent("tau_ct", tau_ct, (*batch, k), own.dtype, check_finite)
    dtype = common(own, ct, tau_ct)
    factors, tau = _factors(stacked(own, 2, batch, dtype))
    bar = np.empty_like(factors)
    ways = stacked(ct, 2, batch, dtype), stacked(tau_ct, 1, batch, dtype)
    _core.linalg_geqrf_vjp(factors, tau, ways[0], ways[1], bar, _threads.get_num_threads())
    return gradient(bar.reshape(own.shape), own.shape, own.dtype)


class QR(NamedTuple):
    """The result of `qr`, with the names of NumPy's."""

    Q: Array
    R: Array


def qr(a: ArrayLike, mode: Literal["reduced", "complete"] = "reduced", *, check_finite: bool = True) -> QR:
    """The QR factorisation A = Q R, as numpy.linalg.qr: the batch is shared by the threads.

    Parameters
    ----------
    a
        Shape (*, m, n), real or complex.
    mode
        "reduced": Q has k = min(m, n) columns and R as many rows. "complete": Q is square.
    check_finite
        Reject NaN and infinity in a.

    Returns
    -------
    Q : numpy.ndarray
        Shape (*, m, k), or (*, m, m) if complete: orthonormal columns.
    R : numpy.ndarray
        Shape (*, k, n), or (*, m, n) if complete: zero below the diagonal.

    Raises
    ------
    ValueError
        If a has fewer than two axes, mode is another, or, under `check_finite`, for NaN or infinity.
    TypeError
        If a has an unsupported dtype.

    Notes
    -----
    `geqrf`, with its signs: the diagonal of R is real. Costs n^2 (m - n / 3) multiply-adds for m >= n, and 2 m n^2
    more for Q, or 2 m^2 n if complete. The gradient is that of `householder_product` and `geqrf`.

    Examples
    --------
    >>> import isometry as iso
    >>> q, r = iso.linalg.qr([[3.0], [4.0]])
    >>> q.round(12), r
    (array([[-0.6],
           [-0.8]]), array([[-5.]]))
    """
    own = taken("a", a)
    check_linalg.factored("a", own.shape, mode)
    factors, tau = geqrf(own, check_finite=check_finite)
    m, k = own.shape[-2], tau.shape[-1]
    if mode == "complete":
        q = ormqr(factors[..., :k], tau, np.eye(m, dtype=own.dtype), check_finite=False)
        return QR(q, np.triu(factors))
    return QR(householder_product(factors[..., :k], tau, check_finite=False), np.triu(factors[..., :k, :]))


def _factors(a: Array) -> tuple[Array, Array]:
    """Of matrices with one batch axis."""
    r, tau = np.empty_like(a), np.empty((len(a), min(a.shape[-2:])), a.dtype)
    _core.linalg_geqrf(a, r, tau, _threads.get_num_threads())
    return r, tau
