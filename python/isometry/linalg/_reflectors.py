"""Products of Householder reflections in LAPACK's storage."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isometry import _core, _threads
from isometry._arrays import Array, DType, all_finite, common, gradient, ready, stacked, taken
from isometry._rules import check, check_linalg
from isometry._rules.check import Shape


def householder_product(a: ArrayLike, tau: ArrayLike, *, check_finite: bool = True) -> Array:
    """The first k columns of a product of k reflections, as torch.linalg.householder_product.

    Q = H_1 H_2 ... H_k with H_j = I - tau_j v_j v_j^H, where v_j is the j-th column of a below the diagonal, with a
    one on it; LAPACK's orgqr, for any tau.

    Parameters
    ----------
    a
        Shape (*, m, k), k <= m, as `geqrf` gives it; the entries on and above the diagonal are not used.
    tau
        Shape (*, k). Where there are fewer than k, the missing ones are zero.
    check_finite
        Reject NaN and infinity in the arguments.

    Returns
    -------
    numpy.ndarray
        Shape (*, m, k); batch shapes broadcast.

    Raises
    ------
    ValueError
        If a has more columns than rows, tau has more than k entries, batch shapes do not broadcast, or, under
        `check_finite`, for NaN or infinity.
    TypeError
        If an array has an unsupported dtype.

    Notes
    -----
    Q = E - V T V_1^H, the compact WY form, with T = (I + D S)^{-1} D, D = diag(tau), S = striu(V^H V): nothing divides
    by tau. Costs about 2 m k^2 multiply-adds; the batch is shared by the threads.

    References
    ----------
    Schreiber, Van Loan: A storage-efficient WY representation for products of Householder transformations, 1989.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.linalg.householder_product([[0.0], [1.0]], [1.0])
    array([[ 0.],
           [-1.]])
    """
    given = _taken(check_finite, a=a, tau=tau)
    out = np.empty(given.a.shape, given.dtype)
    _core.linalg_product(given.a, given.tau, out, _threads.get_num_threads())
    return out.reshape(*given.sizes.batch, *out.shape[1:])


def householder_product_vjp(
    a: ArrayLike, tau: ArrayLike, ct: ArrayLike, *, check_finite: bool = True
) -> tuple[Array, Array]:
    """Return the gradients of `householder_product` in a and tau, from the gradient in its result.

    Parameters
    ----------
    a, tau
        As given to `householder_product`.
    ct
        The cotangent, of the shape of the result.
    check_finite
        Reject NaN and infinity in the arguments.

    Returns
    -------
    a_bar, tau_bar : numpy.ndarray
        In the shapes of a and tau; a_bar is zero on and above the diagonal.

    Raises
    ------
    ValueError
        As for `householder_product`, and if ct does not have the shape of the result.
    TypeError
        As for `householder_product`, and if ct is complex where the result is real.

    Notes
    -----
    Finite for every tau. Torch divides by 1 - tau ||v||^2, which is zero where a factor has no inverse.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.linalg.householder_product_vjp([[0.0], [1.0]], [0.5], [[1.0], [1.0]])
    (array([[ 0. ],
           [-0.5]]), array([-2.]))
    """
    given = _taken(check_finite, a=a, tau=tau)
    own = cotangent("ct", ct, (*given.sizes.batch, *given.a.shape[1:]), given.dtype, check_finite)
    given = given.of(common(given.dtype, own))
    a_bar, tau_bar = np.empty_like(given.a), np.empty_like(given.tau)
    _core.linalg_product_vjp(
        given.a, given.tau, stacked(own, 2, given.sizes.batch, given.dtype), a_bar, tau_bar, _threads.get_num_threads()
    )
    return given.gradients(a_bar, tau_bar)


def ormqr(
    a: ArrayLike,
    tau: ArrayLike,
    other: ArrayLike,
    left: bool = True,
    transpose: bool = False,
    *,
    check_finite: bool = True,
) -> Array:
    """Multiply by a product of reflections without forming it, as torch.ormqr.

    Parameters
    ----------
    a, tau
        The reflections of `householder_product`, shapes (*, m, k) and (*, k); Q is m x m here.
    other
        Shape (*, m, n), or (*, n, m) with left=False.
    left
        Q other, else other Q.
    transpose
        Q^H in place of Q.
    check_finite
        Reject NaN and infinity in the arguments.

    Returns
    -------
    numpy.ndarray
        In the shape of other; batch shapes broadcast.

    Raises
    ------
    ValueError
        As for `householder_product`, and if other does not have m rows (columns).
    TypeError
        If an array has an unsupported dtype, or a flag is no bool.

    Notes
    -----
    other - V T (V^H other). Costs 2 m n k multiply-adds and k^2 (m / 2 + k / 6) for T.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> iso.linalg.ormqr([[0.0], [1.0]], [1.0], np.eye(2))
    array([[ 0., -1.],
           [-1.,  0.]])
    """
    left, transpose = check.flag("left", left), check.flag("transpose", transpose)
    given = _taken(check_finite, left, a=a, tau=tau, other=other)
    out = np.empty(given.rest.shape, given.dtype)
    _core.linalg_apply(given.a, given.tau, given.rest, left, transpose, out, _threads.get_num_threads())
    return out.reshape(*given.sizes.batch, *out.shape[1:])


def ormqr_vjp(
    a: ArrayLike,
    tau: ArrayLike,
    other: ArrayLike,
    ct: ArrayLike,
    left: bool = True,
    transpose: bool = False,
    *,
    check_finite: bool = True,
) -> tuple[Array, Array, Array]:
    """Return the gradients of `ormqr` in a, tau and other, from the gradient in its result.

    Parameters
    ----------
    a, tau, other, left, transpose
        As given to `ormqr`.
    ct
        The cotangent, of the shape of the result.
    check_finite
        Reject NaN and infinity in the arguments.

    Returns
    -------
    a_bar, tau_bar, other_bar : numpy.ndarray
        In the shapes of a, tau and other.

    Raises
    ------
    ValueError
        As for `ormqr`, and if ct does not have the shape of the result.
    TypeError
        As for `ormqr`, and if ct is complex where the result is real.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.linalg.ormqr_vjp([[0.0], [1.0]], [1.0], [[1.0], [0.0]], [[0.0], [1.0]])[2]
    array([[-1.],
           [ 0.]])
    """
    left, transpose = check.flag("left", left), check.flag("transpose", transpose)
    given = _taken(check_finite, left, a=a, tau=tau, other=other)
    own = cotangent("ct", ct, (*given.sizes.batch, *given.rest.shape[1:]), given.dtype, check_finite)
    given = given.of(common(given.dtype, own))
    own = stacked(own, 2, given.sizes.batch, given.dtype)
    a_bar, tau_bar, bar = (np.empty_like(x) for x in (given.a, given.tau, given.rest))
    _core.linalg_apply_vjp(
        given.a, given.tau, given.rest, own, left, transpose, a_bar, tau_bar, bar, _threads.get_num_threads()
    )
    wide = bar.reshape(*given.sizes.batch, *bar.shape[1:])
    return (*given.gradients(a_bar, tau_bar), gradient(wide, *given.forms[2]))


class _Given(NamedTuple):
    """The arguments in one dtype, each with one batch axis, and how they were given."""

    a: Array
    tau: Array
    rest: Array  # other; a itself for a product
    dtype: DType
    sizes: check_linalg.Sizes
    forms: list[tuple[Shape, DType]]

    def of(self, dtype: DType) -> _Given:
        a, tau, rest = (ready(x, dtype) for x in (self.a, self.tau, self.rest))
        return self._replace(a=a, tau=tau, rest=rest, dtype=dtype)

    def gradients(self, a_bar: Array, tau_bar: Array) -> tuple[Array, Array]:
        """In the form of a and tau."""
        batch, m, k, given = self.sizes
        (a_shape, a_dtype), (tau_shape, tau_dtype) = self.forms[:2]
        return (
            gradient(a_bar.reshape(*batch, m, k), a_shape, a_dtype),
            gradient(tau_bar.reshape(*batch, k)[..., :given], tau_shape, tau_dtype),
        )


def _taken(check_finite: bool, left: bool = True, **values: ArrayLike) -> _Given:
    named = {name: taken(name, value) for name, value in values.items()}
    sizes = check_linalg.reflectors(*[x.shape for x in named.values()], left=left)
    all_finite(check_finite, **named)
    dtype, forms = common(*named.values()), [(x.shape, x.dtype) for x in named.values()]
    if sizes.given < sizes.k:
        missing = np.zeros((*named["tau"].shape[:-1], sizes.k - sizes.given), dtype)
        named["tau"] = np.concatenate((named["tau"], missing), -1)
    own = [stacked(x, rank, sizes.batch, dtype) for x, rank in zip(named.values(), (2, 1, 2), strict=False)]
    return _Given(own[0], own[1], own[2 % len(own)], dtype, sizes, forms)


def cotangent(name: str, value: ArrayLike, shape: Shape, dtype: DType, check_finite: bool) -> Array:
    """The cotangent of a result of this shape and dtype."""
    own = taken(name, value)
    check.exact(name, own.shape, shape)
    check.field_of_result(name, own.dtype.name, dtype.name)
    all_finite(check_finite, **{name: own})
    return own
