"""m reflections applied to B rows, forward and backward.

Flops: T n m^2, forward 4 n m B + m^2 B, backward 8 n m B + 3 m^2 B + 2 n m^2.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench import formulas
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row

SIZES = {  # (n, m, B): bar and goal against compact WY
    (128, 16, 50): (2.0, 3.5),
    (256, 32, 1): (2.0, 3.5),
    (512, 128, 64): (1.5, 2.3),
    (1024, 256, 256): (1.2, 1.4),
}
LONGEST_LOOP = 128


def rows() -> Iterator[Row]:
    for (n, m, batch), (bar, goal) in SIZES.items():
        yield make_row(f"householder apply {n}/{m}/B{batch}", n, m, batch, bar, goal)


def make_row(name: str, n: int, m: int, batch: int, bar: float, goal: float) -> Row:
    """The row of one size; the operator is rebuilt in every call."""
    torch.manual_seed(0)
    u, x, cotangent = torch.tril(torch.randn(n, m)), torch.randn(batch, n), torch.randn(batch, n)

    def leaves(dtype: torch.dtype) -> dict[str, Tensor]:
        return {"vectors": u.to(dtype, copy=True).requires_grad_(), "x": x.to(dtype, copy=True).requires_grad_()}

    def wy(dtype: torch.dtype) -> Candidate:
        own = leaves(dtype)
        return differentiable(
            "torch compact WY", own, lambda: formulas.wy_apply(own["vectors"], own["x"]), cotangent.to(dtype)
        )

    mine, looped = leaves(torch.float32), leaves(torch.float32)
    peers = [wy(torch.float32)]
    if m <= LONGEST_LOOP:
        forward = lambda: formulas.loop_apply(looped["vectors"], looped["x"])
        peers.append(differentiable("torch loop over reflections", looped, forward, cotangent))
    return Row(
        name=name,
        ours=differentiable("isometry", mine, lambda: it.Householder(mine["vectors"]).apply(mine["x"]), cotangent),
        peers=peers,
        reference=wy(torch.float64).results or dict,
        bars=[Bar("best torch", bar, goal)],
        flops=12.0 * n * m * batch + 4.0 * m * m * batch + 3.0 * n * m * m,
    )
