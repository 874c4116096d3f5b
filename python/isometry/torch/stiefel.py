"""A step on the manifold of orthogonal or unitary matrices."""

from __future__ import annotations

import torch
from torch import Tensor

from .._rules import check, check_stiefel
from ._function import dtype_name
from .operators._operator import tensor


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


def moved(w: Tensor, gradient: Tensor, rate: float) -> Tensor:
    """W + D with (I + r/2 A) D = -r A W: the rounding of a short step is as short."""
    half = gradient @ w.mH
    half = (rate / 2) * (half - half.mH)
    eye = torch.eye(w.shape[-1], dtype=w.dtype, device=w.device)
    step: Tensor = torch.linalg.solve_ex(eye + half, -2 * (half @ w))[0]
    return w + step
