"""A step on the manifold of orthogonal or unitary matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, all_finite, common, field_of_result, taken
from isometry._rules import check_stiefel
from isometry.operators import Cayley, Dense


def cayley_step(w: ArrayLike, gradient: ArrayLike, rate: float, *, check_finite: bool = True) -> Array:
    """One step of gradient descent along a curve of orthogonal or unitary matrices.

    With A = G W^H - W G^H, which is skew-Hermitian, the step ends at Y(rate) of the curve Y(r) = (I + r/2 A)^{-1} (I -
    r/2 A) W: unitary for every r, Y(0) = W, Y'(0) = -A W. At r = 0 the loss falls at the rate ||A||_F^2 / 2, so there
    is descent unless W is critical.

    Parameters
    ----------
    w
        W, shape (*, n, n), orthogonal or unitary.
    gradient
        G = dL/dRe W + i dL/dIm W, of the same shape.
    rate
        The step length, at least 0.
    check_finite
        Reject NaN and infinity in the arguments.

    Returns
    -------
    numpy.ndarray
        The next W, shape (*, n, n). It is as far from unitary as w, up to some eps (1 + rate ||A||).

    Raises
    ------
    ValueError
        If w is not square, the shapes differ, rate is negative or not a finite number, or, under `check_finite`, for
        NaN or infinity. Also if rate is so large that I + rate/2 A is numerically singular: rate/2 ||A|| above 4.5e15
        for a singular A, as every real one of odd n is.
    TypeError
        If an array has an unsupported dtype, or gradient is complex and w real.

    Notes
    -----
    Computed as W + (Q - I) W, Q = (I + H)^{-1} (I - H) with H = r/2 A, and Q - I = -(I + Q) H for a short step, so that
    the rounding error shrinks with it. Costs about (26/3) n^3 operations, complex four times as many.

    References
    ----------
    Wen, Yin: A feasible method for optimization with orthogonality constraints, Mathematical Programming 2013; Wisdom,
    Powers, Hershey, Le Roux, Atlas: Full-capacity unitary recurrent neural networks, NIPS 2016.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> target = np.array([[0.0, -1.0], [1.0, 0.0]])
    >>> w = np.eye(2)
    >>> for _ in range(100):
    ...     w = iso.cayley_step(w, w - target, 0.1)
    >>> bool(np.abs(w - target).max() < 1e-3)
    True
    """
    w, gradient = taken("w", w), taken("gradient", gradient)
    check_stiefel.step(w.shape, gradient.shape)
    rate = check_stiefel.rate("rate", rate)
    dtype = common(w, gradient)
    if gradient.dtype.kind == "c":
        field_of_result("gradient", gradient, w.dtype)
    all_finite(check_finite, w=w, gradient=gradient)
    w, gradient = w.astype(dtype), gradient.astype(dtype)
    half = _rows(gradient, Dense(np.conj(w)))
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        half = (rate / 2) * (half - np.conj(np.swapaxes(half, -1, -2)))
    if not np.isfinite(half).all() and np.isfinite(w).all() and np.isfinite(gradient).all():
        check_stiefel.too_long("rate")
    try:
        q = Cayley.from_skew(half, check_finite=False).matrix(check_finite=False)
    except ValueError:
        check_stiefel.too_long("rate")
    # Q - I = -(I + Q) H: the rounding error shrinks with the step. A long step would magnify the error of Q.
    short = np.abs(half).sum(-2).max(-1)[..., None, None] <= 1
    step = np.where(short, -(half + _columns(Dense(q), half)), q - np.eye(w.shape[-1], dtype=dtype))
    return w + _columns(Dense(step), w)


def _rows(x: Array, operator: Dense) -> Array:
    """X M^T for the matrix M of the operator, NaN included."""
    return np.moveaxis(operator.apply(np.moveaxis(x, -2, 0), check_finite=False), 0, -2)


def _columns(operator: Dense, x: Array) -> Array:
    """M X."""
    return np.swapaxes(_rows(np.swapaxes(x, -1, -2), operator), -1, -2)
