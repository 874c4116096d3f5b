"""The nearest matrix with orthonormal columns."""

from typing import Literal, overload

from numpy.typing import ArrayLike

from isometry import _threads
from isometry._arrays import Array, all_finite, common, gradient, stacked, taken
from isometry._inverse import procrustes as kernels
from isometry._rules import check, check_linalg
from isometry._rules.check import Shape
from isometry.linalg._reflectors import cotangent


@overload
def procrustes(
    a: ArrayLike, *, special: bool = False, return_scale: Literal[False] = False, check_finite: bool = True
) -> Array: ...


@overload
def procrustes(
    a: ArrayLike, *, special: bool = False, return_scale: Literal[True], check_finite: bool = True
) -> tuple[Array, Array]: ...


def procrustes(
    a: ArrayLike, *, special: bool = False, return_scale: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """The nearest matrix with orthonormal columns: the polar factor W = U V^H of A = U S V^H.

    It minimises the Frobenius norm ||A - W||. For points as rows of P and Q, A = Q^T P gives the rotation that turns
    P into Q, W p_i = q_i (Kabsch; Wahba's problem). `scipy.linalg.orthogonal_procrustes` returns its transpose.

    Parameters
    ----------
    a
        Shape (*, m, n), real or complex. If m < n, the rows of W are orthonormal.
    special
        The nearest rotation, of determinant 1: the column of U that belongs to s_n is negated where det A < 0. For real
        square matrices.
    return_scale
        Return the sum of the singular values too, as scipy.linalg.orthogonal_procrustes does.
    check_finite
        Reject NaN and infinity in a.

    Returns
    -------
    w : numpy.ndarray
        W, shape (*, m, n), dtype of a.
    scale : numpy.ndarray
        With `return_scale`, shape (*), real: <W, A>, the sum of the singular values, the last with the sign of det A
        under `special`. Divided by ||P||^2 it is the scale of the similarity between points P and Q; its gradient is W.

    Raises
    ------
    ValueError
        If a has fewer than two axes, for `special` of matrices that are not square, or, under `check_finite`, for NaN
        or infinity.
    TypeError
        If a has an unsupported dtype, or for `special` of complex matrices.

    See Also
    --------
    qr : orthonormal columns, not the nearest.
    :doc:`numpy-scipy` : SciPy's names and ours.
    :doc:`rotations` : matrices from points.

    Notes
    -----
    Where A is singular, W is one of several nearest matrices; the zero matrix gives an orthogonal one. Huge and tiny
    matrices neither overflow nor vanish. Without `check_finite` a matrix with NaN or infinity gives NaN, and other
    members of a stack keep their bits. Matrices of at most 8 rows or columns are decomposed by Jacobi rotations, one
    matrix per lane; larger ones by some six iterations of products and an inverse [1]_, 2 m n^2 + n^3 multiply-adds
    each, and up to thirty where A is singular.

    References
    ----------
    .. [1] Y. Nakatsukasa, Z. Bai, F. Gygi, "Optimizing Halley's iteration for computing the matrix polar
       decomposition", SIAM J. Matrix Anal. Appl. 31(5), 2010.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.linalg.procrustes([[0.0, 2.0], [-3.0, 0.0]]).round(12) + 0
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    own, batch, special = _checked(a, special, check_finite)
    return_scale = check.flag("return_scale", return_scale)
    w = kernels.nearest(stacked(own, 2, batch, own.dtype), special, _threads.get_num_threads())
    if not return_scale:
        return w.reshape(own.shape)
    scale = (w.conj() * stacked(own, 2, batch, own.dtype)).real.sum((-2, -1))
    return w.reshape(own.shape), scale.reshape(batch)


def procrustes_vjp(a: ArrayLike, ct: ArrayLike, *, special: bool = False, check_finite: bool = True) -> Array:
    """Return the gradient of `procrustes` in the matrices, from the gradient in its result.

    With X = U^H ct V, the gradient is U [(X - X^H)_ij / (s_i + s_j)] V^H, and of a tall A (I - U U^H) ct V S^-1 V^H
    more. It is finite at orthogonal matrices, where the singular values are equal.

    Parameters
    ----------
    a
        As given to `procrustes`.
    ct
        The cotangent, in the shape of a.
    special
        As for `procrustes`.
    check_finite
        Reject NaN and infinity in the arguments.

    Returns
    -------
    numpy.ndarray
        The gradient, in the shape of a. A term whose s_i + s_j is 0 to rounding is 0: the derivative does not exist.
        What overflows, as that of denormal matrices, is the largest number.

    Raises
    ------
    ValueError
        As for `procrustes`, and if ct does not have the shape of a.
    TypeError
        As for `procrustes`, and if ct is complex where a is real.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.linalg.procrustes_vjp([[2.0, 0.0], [0.0, 2.0]], [[0.0, 1.0], [0.0, 0.0]])
    array([[ 0.  ,  0.25],
           [-0.25,  0.  ]])
    """
    own, batch, special = _checked(a, special, check_finite)
    along = cotangent("ct", ct, own.shape, own.dtype, check_finite)
    dtype, threads = common(own, along), _threads.get_num_threads()
    matrices, along = stacked(own, 2, batch, dtype), stacked(along, 2, batch, dtype)
    w = matrices if kernels.small(matrices) else kernels.nearest(matrices, special, threads)
    return gradient(kernels.pulled(matrices, w, along, special, threads).reshape(own.shape), own.shape, own.dtype)


def _checked(a: ArrayLike, special: bool, check_finite: bool) -> tuple[Array, Shape, bool]:
    own, special = taken("a", a), check.flag("special", special)
    batch = check_linalg.nearest(own.shape, own.dtype.name, special=special)
    all_finite(check_finite, a=own)
    return own, batch, special
