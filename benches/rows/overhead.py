"""One small call beside an autograd.Function that does nothing: what the path through Python costs at least."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

import isometry.torch as it
from harness.row import Bar, Row
from harness.sizes import SOLVED
from rows.torch import formulas
from rows.torch.sides import Side, row


class Empty(Function):
    """Takes and returns tensors of the shapes of a call, and computes nothing."""

    @staticmethod
    def forward(ctx: Any, upper: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(upper, x)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004
        return torch.empty_like(ctx.saved_tensors[0]), None


def rows() -> Iterator[Row]:
    """W x of one row, W a Cayley transform of 8 x 8."""
    form, bars = {"upper": formulas.packed}, [Bar("empty Function", 0.77, 0.83)]
    draw = lambda: {"upper": torch.randn(8, 8) * 0.05, "x": torch.randn(1, 8)}
    peers = {"empty Function": Side(Empty.apply, form, {}, checked=False)}
    ours, exact = lambda upper, x: it.Cayley(upper).apply(x), lambda p, x: x @ formulas.cayley(p).mT
    more: dict[str, Any] = {"fixed": ("x",), "form": form, "reference": exact, "tolerance": SOLVED}
    yield row("small call beside an empty Function", draw, ours, peers, bars, **more)
