"""The differentiable kernel call of a dense W, also used by operators that form their matrix first.

Arguments have no batch axis, weight (p, q), or one, (nb, p, q); all of one dtype.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function

from ... import _core
from .. import reference
from .._function import array, derived, formula_vjp, gradient, room, threads


class DenseApply(Function):
    """Rows W x or W^H x; x (..., q) without a batch, (nb, k, q) with one (p instead of q for the adjoint)."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: Tensor, adjoint: bool) -> Tensor:
        ctx.save_for_backward(weight, x)
        ctx.adjoint = adjoint
        p, q = weight.shape[-2:]
        nb = weight.shape[0] if weight.dim() == 3 else 1
        into, onto = (p, q) if adjoint else (q, p)
        out, c = room((*x.shape[:-1], onto), x.dtype, nb, -1, onto)
        _core.dense_apply(array(weight, nb, p, q), array(x, nb, -1, into), c, adjoint, threads())
        return out

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        weight, x = ctx.saved_tensors
        adjoint, wanted = ctx.adjoint, ctx.needs_input_grad[:2]
        if derived(ct):

            def formula(weight: Any, x: Any) -> Tensor:
                return reference.dense_apply(weight, x, adjoint)

            return (*formula_vjp(formula, (weight, x), wanted, ct), None)
        p, q = weight.shape[-2:]
        nb = weight.shape[0] if weight.dim() == 3 else 1
        into, onto = (p, q) if adjoint else (q, p)
        weight_bar, w_bar = gradient(wanted[0], weight, nb, p, q)
        x_bar, h_bar = gradient(wanted[1], x, nb, -1, into)
        h, c_bar = array(x, nb, -1, into), array(ct, nb, -1, onto)
        _core.dense_apply_vjp(array(weight, nb, p, q), h, c_bar, w_bar, h_bar, adjoint, threads())
        return weight_bar, x_bar, None
