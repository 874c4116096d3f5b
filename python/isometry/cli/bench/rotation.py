"""Rotations of one direction to another, forward and backward: one pair for B rows, a pair for every row, the matrix.

Flops: 8 n per row forward and 26 n backward, 30 n per pair; 4 n^2 and 13 n^2 of a matrix. The peers apply two
reflections, or R = I + K + K^2 / (1 + c) with K = b a^T - a b^T of unit vectors a, b.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row

Apply = Callable[[Tensor, Tensor, Tensor], Tensor]


def rows() -> Iterator[Row]:
    yield make_row("rotation 512/B50", (512,), (50, 512), (1.2, 2.0))
    yield make_row("rotation of each of 1600 rows 256", (1600, 256), (1600, 256), (2.0, 4.0))
    yield make_row("rotation matrix 256", (256,), None, (1.2, 2.0))


def unit(x: Tensor) -> Tensor:
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def by_reflections(start: Tensor, end: Tensor, x: Tensor) -> Tensor:
    """H(a + b) H(a) x."""
    a = unit(start)
    for u in (a, unit(a + unit(end))):
        x = x - 2 * (x * u).sum(-1, keepdim=True) * u
    return x


def by_plane(start: Tensor, end: Tensor, x: Tensor) -> Tensor:
    """x + K x + K^2 x / (1 + c)."""
    a, b = unit(start), unit(end)
    c = (a * b).sum(-1, keepdim=True)
    p, q = (x * a).sum(-1, keepdim=True), (x * b).sum(-1, keepdim=True)
    # K x = b p - a q; K a = b - c a, K b = c b - a
    return x + b * p - a * q + ((c * b - a) * p - (b - c * a) * q) / (1 + c)


def make_row(name: str, shape: tuple[int, ...], rows_: tuple[int, ...] | None, bar: tuple[float, float]) -> Row:
    """The row of one shape of the vectors, on rows or for the matrix."""
    torch.manual_seed(0)
    n = shape[-1]
    start, end = torch.randn(*shape), torch.randn(*shape)
    x = torch.eye(n) if rows_ is None else torch.randn(*rows_)
    cotangent = torch.randn(*x.shape)

    def side(name: str, apply: Apply, own: torch.dtype) -> Candidate:
        leaves = {"start": start.to(own, copy=True).requires_grad_(), "end": end.to(own, copy=True).requires_grad_()}
        given = x.to(own, copy=True).requires_grad_(rows_ is not None)
        forward = lambda: apply(leaves["start"], leaves["end"], given)
        return differentiable(name, leaves | ({"x": given} if rows_ else {}), forward, cotangent.to(own))

    # row i of R is R^T e_i
    swapped = lambda apply: lambda a, b, x: apply(b, a, x) if rows_ is None else apply(a, b, x)
    ours = lambda a, b, x: it.Rotation(a, b).matrix() if rows_ is None else it.Rotation(a, b).apply(x)
    return Row(
        name=name,
        ours=side("isometry", ours, torch.float32),
        peers=[
            side("torch reflections", swapped(by_reflections), torch.float32),
            side("torch plane", swapped(by_plane), torch.float32),
        ],
        reference=side("float64", swapped(by_plane), torch.float64).results or dict,
        bars=[Bar("best torch", *bar)],
        flops=34.0 * x.numel() + 30.0 * start.numel() if rows_ else 17.0 * n * n,
    )
