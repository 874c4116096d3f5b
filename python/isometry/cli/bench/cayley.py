"""W = (I + A)^-1 (I - A) D of one matrix, forward and backward: 2 n^3 + 4 n^3 flops (an inverse, two products)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench import formulas
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row

SIZES = {190: (2.0, 3.5), 512: (2.0, 3.0), 1024: (2.0, 2.5)}
# a solve adds about cond(I + A) to the error of the product; here cond is below 4
TOLERANCE = (2e-5, 4e-4)


def rows() -> Iterator[Row]:
    for n, (bar, goal) in SIZES.items():
        signs = torch.ones(n)
        signs[n // 2 :] = -1
        yield make_row(f"cayley {n}", (n, n), signs, bar, goal)


def make_row(name: str, shape: tuple[int, ...], signs: Tensor | None, bar: float, goal: float) -> Row:
    """The row of one matrix or one batch; our side reads the packed triangle, the peer a full square."""
    torch.manual_seed(0)
    p, cotangent = torch.randn(*shape) * 0.05, torch.randn(*shape)
    mine = formulas.packed(p).requires_grad_()

    def solve(dtype: torch.dtype) -> Candidate:
        leaf = p.to(dtype, copy=True).requires_grad_()
        last = 1.0 if signs is None else signs.to(dtype)
        forward = lambda: formulas.cayley(formulas.skew(leaf), last)
        pick = {"upper": formulas.packed}
        return differentiable("torch.linalg.solve", {"upper": leaf}, forward, cotangent.to(dtype), pick)

    return Row(
        name=name,
        ours=differentiable("isometry", {"upper": mine}, lambda: it.Cayley(mine, signs=signs).matrix(), cotangent),
        peers=[solve(torch.float32)],
        reference=lambda: reference(p, signs, cotangent),
        bars=[Bar("torch.linalg.solve", bar, goal)],
        flops=6.0 * p.numel() * shape[-1],
        tolerance=TOLERANCE,
    )


def reference(p: Tensor, signs: Tensor | None, cotangent: Tensor) -> dict[str, Tensor]:
    """Float64 on one thread, one matrix at a time, with the residual checked: torch's batched solve is wrong with
    several threads on some CPUs."""
    square = p.double().reshape(-1, *p.shape[-2:])
    last = 1.0 if signs is None else signs.double()
    eye = torch.eye(p.shape[-1], dtype=torch.float64)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        a = formulas.skew(square)
        s = torch.linalg.inv(eye + a)
        w = (2 * s - eye) * last
        v = 2 * s.mT @ (cotangent.double().reshape(square.shape) * last) @ s.mT  # dL/dA = V^T - V (Theorem 3.2)
    finally:
        torch.set_num_threads(threads)
    residual = float(((eye + a) @ (w * last) - (eye - a)).abs().max())
    if residual > 1e-10:
        raise ArithmeticError(f"the float64 reference has a residual of {residual:.1e}")
    gradient = formulas.packed(v.mT - v)
    return {"value": w.reshape(p.shape), "gradient of upper": gradient.reshape(*p.shape[:-2], -1)}
