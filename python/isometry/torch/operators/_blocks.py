"""Rows times a block-diagonal matrix, y[..., k, :] = W_k x[..., k, :], without an array in another order."""

# ruff: noqa: ARG002  the interface of `Plan`

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import _core
from .._dispatch.function import empty, empty_gradients, readable
from .._dispatch.mode import WITHOUT_KERNELS, mode
from .._dispatch.plan import Flags, Out, Plan, Results, Rows, Saved, Tensors
from .._dispatch.results import computed
from ..formulas._precision import full_precision


def blocks(w: Tensor, x: Tensor) -> Tensor:
    """y (..., nb, p) for blocks w (nb, p, q) and rows x (..., nb, q)."""
    how = mode(w, x)
    if how in WITHOUT_KERNELS or not x.numel():
        return _formula(w, x)
    (y,) = computed(BLOCKS, how, None, (), (w, x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])))
    return y.reshape(*x.shape[:-1], w.shape[-2])


@full_precision
def _formula(w: Tensor, x: Tensor) -> Tensor:
    return torch.einsum("kpq,...kq->...kp", w, x)


class Blocks(Plan):
    """The product, from w and rows x (rows, nb, q)."""

    def run(self, settings: Any, tensors: Tensors, saving: bool, at: Any) -> tuple[Results, Saved]:
        w, x = tensors
        out, y = empty((*x.shape[:-1], w.shape[-2]), x.dtype)
        _core.blocks_apply(readable(w), readable(x), y, at)
        return (out,), ()

    def pull(self, settings: Any, tensors: Tensors, out: Out, wanted: Flags, at: Any) -> Tensors:
        (w, x), (ct,), (grads, (w_bar, x_bar)) = tensors, out[2], empty_gradients(wanted, tensors)
        _core.blocks_apply_vjp(readable(w), readable(x), readable(ct), w_bar, x_bar, at)
        return grads

    def formula(self, settings: Any, *tensors: Any) -> Results:
        return (_formula(*tensors),)

    def rows(self, settings: Any, batched: Sequence[int], tensors: Tensors) -> Rows | None:
        return Rows((None, 0), (0,), True) if list(batched) == [1] else None


BLOCKS = Blocks("Blocks")
