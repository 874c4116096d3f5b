"""The differentiable kernel call of `activate`."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function

from .. import _core
from . import formulas
from ._function import array, formula_vjp, room, rooms, threads
from ._mode import differentiated


def activated(z: Tensor, bias: Tensor | None, name: str, slope: float) -> Tensor:
    """phi(z) for z of shape (..., n), by the kernel."""
    n = z.shape[-1]
    out, f = room(z.shape, z.dtype, -1, n)
    own = None if bias is None else array(bias)
    _core.activate(array(z, -1, n), name, own, slope, f, threads())
    return out


class Activate(Function):
    """`activated`, with its gradient."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, bias: Tensor | None, name: str, slope: float) -> Tensor:
        ctx.save_for_backward(z, bias)
        ctx.name, ctx.slope = name, slope
        return activated(z, bias, name, slope)

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        z, bias = ctx.saved_tensors
        name, slope, wanted, n = ctx.name, ctx.slope, ctx.needs_input_grad[:2], z.shape[-1]
        if differentiated(ct):

            def formula(z: Any, bias: Any) -> Tensor:
                return formulas.activation.activate(z, name, bias, slope)

            return (*formula_vjp(formula, (z, bias), wanted, ct), None, None)
        z_bar, rows_bar = room(z.shape, z.dtype, -1, n)
        (own_bar,), (b_bar,) = rooms(wanted[1:], (bias,))
        own = None if bias is None else array(bias)
        _core.activate_vjp(array(z, -1, n), name, own, slope, array(ct, -1, n), rows_bar, b_bar, threads())
        return z_bar, own_bar, None, None
