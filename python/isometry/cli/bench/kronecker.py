"""Kronecker products of factors 2 x 2: applied to B rows, and as the transition of a recurrence, forward and backward.

Flops of n = 2^F: 4 n F per row, 12 n F with the backward. The peers contract one axis after the other, by einsum and by
matmul, or multiply the matrix out once per call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row

FACTORS, ROWS, STEPS, INPUTS = 9, 50, 500, 2
Apply = Callable[[list[Tensor], Tensor], Tensor]


def rows() -> Iterator[Row]:
    for dtype in (torch.float32, torch.complex64):
        yield applied(dtype)
    yield recurrent()


def by_matmul(factors: list[Tensor], x: Tensor) -> Tensor:
    """W x for rows x, one axis after the other, from the last."""
    y, behind = x, 1
    for w in reversed(factors):
        y = w @ y.reshape(-1, w.shape[1], behind)
        behind *= w.shape[0]
    return y.reshape(len(x), behind)


def by_einsum(factors: list[Tensor], x: Tensor) -> Tensor:
    """The same by einsum."""
    y = x.reshape(-1, *[w.shape[1] for w in factors])
    axes = "abcdefghijklmnopqrstuvwxy"[: y.dim()]
    for f, w in enumerate(factors):
        y = torch.einsum(f"z{axes[f + 1]},{axes}->{axes.replace(axes[f + 1], 'z')}", w, y)
    return y.reshape(len(x), -1)


def by_matrix(factors: list[Tensor], x: Tensor) -> Tensor:
    """The same through the matrix."""
    return x @ functools.reduce(torch.kron, factors).mT


PEERS: dict[str, Apply] = {"torch einsum": by_einsum, "torch matmul": by_matmul, "torch matrix": by_matrix}


def orthogonal(dtype: torch.dtype) -> list[Tensor]:
    return [it.Dense.random(2, dtype=dtype).weight for _ in range(FACTORS)]


def applied(dtype: torch.dtype) -> Row:
    """The row of one type; the operator is rebuilt in every call."""
    torch.manual_seed(0)
    n = 2**FACTORS
    factors, x, cotangent = orthogonal(dtype), torch.randn(ROWS, n, dtype=dtype), torch.randn(ROWS, n, dtype=dtype)

    def side(name: str, apply: Apply, own: torch.dtype) -> Candidate:
        given = {f"W{f}": w.to(own, copy=True).requires_grad_() for f, w in enumerate(factors)}
        rows_ = x.to(own, copy=True).requires_grad_()
        return differentiable(name, given | {"x": rows_}, lambda: apply(list(given.values()), rows_), cotangent.to(own))

    wide = torch.complex128 if dtype.is_complex else torch.float64
    many = 4 if dtype.is_complex else 1
    return Row(
        name=f"kronecker apply 2^{FACTORS}/B{ROWS}{' complex' if dtype.is_complex else ''}",
        ours=side("isometry", lambda f, x: it.Kronecker(f).apply(x), dtype),
        peers=[side(name, apply, dtype) for name, apply in PEERS.items()],
        reference=side("float64", by_matmul, wide).results or dict,
        bars=[Bar("einsum or matmul", 4.0, 8.0, ("torch einsum", "torch matmul")), Bar("best torch", 1.0, 2.0)],
        flops=many * 12.0 * n * FACTORS * ROWS,
    )


def recurrent() -> Row:
    """h <- tanh(W h + V x) over a sequence."""
    torch.manual_seed(0)
    n = 2**FACTORS
    factors, v, x = orthogonal(torch.float32), torch.randn(n, INPUTS) / 4, torch.randn(STEPS, ROWS, INPUTS)
    cotangent = torch.randn(STEPS, ROWS, n)

    def loop(apply: Apply) -> Callable[[list[Tensor], Tensor, Tensor], Tensor]:
        def states(factors: list[Tensor], v: Tensor, x: Tensor) -> Tensor:
            h, found = x.new_zeros(ROWS, n), []
            for drive in (x @ v.mT).unbind():
                h = torch.tanh(apply(factors, h) + drive)
                found.append(h)
            return torch.stack(found)

        return states

    def through_matrix(factors: list[Tensor], v: Tensor, x: Tensor) -> Tensor:
        w = functools.reduce(torch.kron, factors).mT
        return loop(lambda _, h: h @ w)(factors, v, x)

    def side(name: str, states: Callable[[list[Tensor], Tensor, Tensor], Tensor], own: torch.dtype) -> Candidate:
        given = {f"W{f}": w.to(own, copy=True).requires_grad_() for f, w in enumerate(factors)}
        weight = v.to(own, copy=True).requires_grad_()
        forward = lambda: states(list(given.values()), weight, x.to(own))
        return differentiable(name, given | {"input_weight": weight}, forward, cotangent.to(own))

    return Row(
        name=f"kronecker recurrence 2^{FACTORS} B{ROWS} T{STEPS}",
        ours=side("isometry", lambda f, v, x: it.recurrence(it.Kronecker(f), x, v), torch.float32),
        peers=[
            side("torch loop, axes", loop(by_matmul), torch.float32),
            side("torch loop, matrix", through_matrix, torch.float32),
        ],
        reference=side("float64", through_matrix, torch.float64).results or dict,
        bars=[Bar("torch loop over axes", 5.0, 10.0, ("torch loop, axes",)), Bar("best torch", 1.5, 3.0)],
        flops=12.0 * n * (FACTORS + INPUTS) * ROWS * STEPS,
    )
