"""One small call, with its operator rebuilt: the overhead of the path through Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

import isometry.torch as it
from isometry.cli.bench import apply, cayley, formulas
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row


def rows() -> Iterator[Row]:
    yield apply.make_row("small householder 8/2/B1", 8, 2, 1, 1.0, 2.0)
    yield cayley.make_row("small cayley 8", (8, 8), None, 1.0, 2.0)
    yield overhead()


class Empty(Function):
    """Takes and returns tensors of the shapes of a call, and computes nothing."""

    @staticmethod
    def forward(ctx: Any, upper: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(upper, x)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004
        return torch.empty_like(ctx.saved_tensors[0]), None


def overhead() -> Row:
    """W x of one row, W a Cayley transform of 8 x 8, beside a Function that does nothing with the same tensors."""
    torch.manual_seed(0)
    p, x, cotangent = torch.randn(8, 8) * 0.05, torch.randn(1, 8), torch.randn(1, 8)
    mine, idle = (formulas.packed(p).requires_grad_() for _ in range(2))
    square = p.double().requires_grad_()

    def wide() -> Tensor:
        return x.double() @ formulas.cayley(formulas.skew(square), 1.0).mT

    pick = {"upper": formulas.packed}
    exact = differentiable("float64", {"upper": square}, wide, cotangent.double(), pick)
    nothing = differentiable("empty Function", {"upper": idle}, lambda: Empty.apply(idle, x), cotangent)
    return Row(
        name="small call beside an empty Function",
        ours=differentiable("isometry", {"upper": mine}, lambda: it.Cayley(mine).apply(x), cotangent),
        peers=[Candidate(nothing.name, nothing.run, None)],
        reference=exact.results or dict,
        bars=[Bar("empty Function", 0.77, 0.83)],
        flops=0.0,
        tolerance=cayley.TOLERANCE,
    )
