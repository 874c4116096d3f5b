"""Rows times a block-diagonal matrix, y[..., k, :] = W_k x[..., k, :], without an array in another order."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from .. import _core
from ._function import formula_vjp, given, room, rooms, threads
from ._mode import KERNEL, RECORDED, differentiated, mode
from .formulas._precision import full_precision


def blocks(w: Tensor, x: Tensor) -> Tensor:
    """y (..., nb, p) for blocks w (nb, p, q) and rows x (..., nb, q)."""
    how = mode(w, x)
    if x.numel() and (how is KERNEL or how is RECORDED):
        rows = x.reshape(-1, *x.shape[-2:])
        y = _applied(w, rows) if how is KERNEL else _Blocks.apply(w, rows)
        return y.reshape(*x.shape[:-1], w.shape[-2])  # type: ignore[no-any-return]
    return _formula(w, x)


@full_precision
def _formula(w: Tensor, x: Tensor) -> Tensor:
    return torch.einsum("kpq,...kq->...kp", w, x)


def _applied(w: Tensor, x: Tensor) -> Tensor:
    out, y = room((*x.shape[:-1], w.shape[-2]), x.dtype)
    _core.blocks_apply(given(w), given(x), y, threads())
    return out


class _Blocks(Function):
    """The kernel's call, with its gradient."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(w, x)
        return _applied(w, x)

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        tensors, wanted = ctx.saved_tensors, ctx.needs_input_grad
        if differentiated(ct):
            return tuple(formula_vjp(_formula, tensors, wanted, ct))
        grads, (w_bar, x_bar) = rooms(wanted, tensors)
        w, x = tensors
        _core.blocks_apply_vjp(given(w), given(x), given(ct), w_bar, x_bar, threads())
        return grads
