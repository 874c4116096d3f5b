"""Matrices with bounded singular values, forward and backward: W, and W x on few rows through the factors.

Both sides are a few products of the same sizes. Flops: two products with the backward's four, 6 n^2 r each of W,
12 n r for each row of the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row

MARGIN = 0.1
Compute = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def rows() -> Iterator[Row]:
    for n in (128, 512):
        yield make_row(f"bounded svd matrix {n}", n, None)
    yield make_row("bounded svd 512/B50", 512, 50)


def sigma(logits: Tensor) -> Tensor:
    return 1 + MARGIN * torch.tanh(logits / 2)


def through_factors(u: Tensor, logits: Tensor, v: Tensor, x: Tensor) -> Tensor:
    """U diag(sigma) V^T x."""
    return ((x @ v) * sigma(logits)) @ u.mT


def through_matrix(u: Tensor, logits: Tensor, v: Tensor, x: Tensor) -> Tensor:
    """The same with W formed first."""
    return x @ ((u * sigma(logits)) @ v.mT).mT


def make_row(name: str, n: int, count: int | None) -> Row:
    """The row of one size: the matrix, or `count` rows."""
    torch.manual_seed(0)
    u, v = it.Dense.random(n).weight, it.Dense.random(n).weight
    logits, x = torch.randn(n), torch.randn(count or 1, n)
    cotangent = torch.randn(n if count is None else count, n)

    def side(name: str, compute: Compute, own: torch.dtype) -> Candidate:
        leaves = {k: t.to(own, copy=True).requires_grad_() for k, t in {"u": u, "logits": logits, "v": v}.items()}
        given = x.to(own, copy=True).requires_grad_(count is not None)
        forward = lambda: compute(leaves["u"], leaves["logits"], leaves["v"], given)
        return differentiable(name, leaves | ({"x": given} if count else {}), forward, cotangent.to(own))

    def ours(u: Tensor, logits: Tensor, v: Tensor, x: Tensor) -> Tensor:
        op = it.BoundedSvd(u, logits, v, margin=MARGIN)
        return op.matrix() if count is None else op.apply(x)

    matrix: Compute = lambda u, logits, v, _: (u * sigma(logits)) @ v.mT
    peers = {"torch": matrix} if count is None else {"torch factors": through_factors, "torch matrix": through_matrix}
    return Row(
        name=name,
        ours=side("isometry", ours, torch.float32),
        peers=[side(name, compute, torch.float32) for name, compute in peers.items()],
        reference=side("float64", next(iter(peers.values())), torch.float64).results or dict,
        bars=[Bar("best torch", 0.8, 1.0)],
        flops=6.0 * n**3 if count is None else 12.0 * n * n * count,
    )
