"""A step on the manifold of orthogonal or unitary matrices."""

import torch
from torch import Tensor

from .._rules import check, check_stiefel
from ._dispatch.function import dtype_name
from ._dispatch.mode import visible
from .operators._operator import tensor
from .operators.cayley import Cayley
from .operators.dense import Dense


def cayley_step(w: Tensor, gradient: Tensor, rate: float) -> Tensor:
    """One step of gradient descent along a curve of orthogonal or unitary matrices; differentiable.

    With A = G W^H - W G^H the step ends at Y(rate), Y(r) = (I + r/2 A)^{-1} (I - r/2 A) W: unitary for every r, Y(0) =
    W, and the loss falls along it at the rate ||A||_F^2 / 2.

    Parameters
    ----------
    w : Tensor, shape (*, n, n)
        Orthogonal or unitary.
    gradient : Tensor, shape (*, n, n)
        G = dL/dRe W + i dL/dIm W, as torch's autograd gives it.
    rate : float
        The step length, at least 0.

    Returns
    -------
    Tensor, shape (*, n, n)
        The next W, as far from unitary as w, up to some eps (1 + rate ||A||).

    Raises
    ------
    ValueError
        If w is not square, the shapes differ, or rate is negative or not a finite number.
        On the CPU also if rate is so large that I + rate/2 A is numerically singular: rate/2 ||A|| above 4.5e15 for a
        singular A, as every real one of odd n is.
    TypeError
        If the dtypes differ, except for a real gradient of a complex w.

    References
    ----------
    Wen, Yin: A feasible method for optimization with orthogonality constraints, Mathematical Programming 2013.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.cayley_step(torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 0.0]]), 2.0)
    tensor([[ 0., -1.],
            [ 1.,  0.]])
    """
    w, gradient = tensor("w", w), tensor("gradient", gradient)
    check_stiefel.step(tuple(w.shape), tuple(gradient.shape))
    rate = check_stiefel.rate("rate", rate)
    if gradient.dtype is not w.dtype:
        check.same_precision("gradient", dtype_name(gradient.dtype), "w", dtype_name(w.dtype))
        check.field_of_result("gradient", dtype_name(gradient.dtype), dtype_name(w.dtype))
        gradient = gradient.to(w.dtype)
    return moved(w, gradient, rate)


def moved(w: Tensor, gradient: Tensor, rate: float | Tensor, name: str = "rate") -> Tensor:
    """Q W, Q = (I + H)^{-1} (I - H), H = rate/2 A, computed as W + (Q - I) W; errors name the rate.

    On the CPU by the package's kernels, whose bits depend neither on threads nor on layout.
    """
    half = product(w, gradient.mH)
    half = (rate / 2) * (half.mH - half)
    if visible(w, gradient, half) and not half.isfinite().all() and w.isfinite().all() and gradient.isfinite().all():
        check_stiefel.too_long(name)
    operator = Cayley.from_skew(half)
    try:
        q = operator.matrix()
    except ValueError:
        check_stiefel.too_long(name)
    # Q - I = -(I + Q) H: the rounding error shrinks with the step. A long step would magnify the error of Q.
    short = half.detach().abs().sum(-2).amax(-1)[..., None, None] <= 1
    eye = torch.eye(w.shape[-1], dtype=w.dtype, device=w.device)
    return w + product(torch.where(short, -(half + product(q, half)), q - eye), w)


def product(a: Tensor, b: Tensor) -> Tensor:
    """A B for stacks of matrices, on the CPU by the package's kernel."""
    return Dense(a)._act(b.mT, False, None, True).mT
