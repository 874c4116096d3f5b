"""Fourier products: applied to B rows, and as the transition of a recurrence, forward and backward.

Flops per row of n elements: 10 n log2 n + 50 n forward, three times that backward. The peers apply the factors one by
one by torch.fft, with reflections as two thin products, or form W once by that and multiply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row

N, ROWS, STEPS, INPUTS = 512, 50, 500, 10

Apply = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def rows() -> Iterator[Row]:
    yield applied(N)
    yield applied(500)
    yield recurrent()


def reflected(x: Tensor, v: Tensor) -> Tensor:
    """(I - 2 v v^H / ||v||^2) x for rows x."""
    w = v * (math.sqrt(2.0) / torch.linalg.vector_norm(v))
    return x - (x @ w.conj())[:, None] * w


def by_factors(phases: Tensor, vectors: Tensor, permutation: Tensor, x: Tensor) -> Tensor:
    """W x for rows x."""
    d = torch.polar(torch.ones_like(phases), phases)
    y = reflected(torch.fft.fft(x * d[0], norm="ortho"), vectors[0])
    return reflected(torch.fft.ifft(y[:, permutation] * d[1], norm="ortho"), vectors[1]) * d[2]


def by_matrix(phases: Tensor, vectors: Tensor, permutation: Tensor, x: Tensor) -> Tensor:
    """The same through the matrix."""
    return x @ by_factors(phases, vectors, permutation, torch.eye(len(permutation), dtype=x.dtype))


def ours(phases: Tensor, vectors: Tensor, permutation: Tensor, x: Tensor) -> Tensor:
    """The same by this package; the operator is rebuilt in every call."""
    return it.FourierProduct(phases, vectors, permutation).apply(x)


def flops(n: int) -> float:
    return 4.0 * (10 * n * math.log2(n) + 50 * n)


def applied(n: int) -> Row:
    """The row of one size."""
    torch.manual_seed(0)
    op = it.FourierProduct.random(n)
    x, cotangent = torch.randn(2, ROWS, n, dtype=torch.complex64)

    def side(name: str, apply: Apply, wide: bool = False) -> Candidate:
        to = lambda t: t.to(torch.complex128 if t.is_complex() else torch.float64) if wide else t.clone()
        leaves = {"phases": to(op.phases), "vectors": to(op.vectors), "x": to(x)}
        for leaf in leaves.values():
            leaf.requires_grad_()
        forward = lambda: apply(leaves["phases"], leaves["vectors"], op.permutation, leaves["x"])
        return differentiable(name, leaves, forward, to(cotangent))

    return Row(
        name=f"fourier apply {n}/B{ROWS} complex",
        ours=side("isometry", ours),
        peers=[side("torch fft", by_factors), side("torch matrix", by_matrix)],
        reference=side("float64", by_factors, True).results or dict,
        bars=[Bar("torch.fft", 4.0, 10.0)],
        flops=flops(n) * ROWS,
    )


def recurrent() -> Row:
    """h <- modReLU(W h + V x) over a sequence."""
    torch.manual_seed(0)
    op = it.FourierProduct.random(N)
    v, x = torch.randn(N, INPUTS, dtype=torch.complex64) / 4, torch.randn(STEPS, ROWS, INPUTS, dtype=torch.complex64)
    bias, cotangent = -0.01 * torch.ones(N), torch.randn(STEPS, ROWS, N, dtype=torch.complex64)

    def activated(z: Tensor, bias: Tensor) -> Tensor:
        r = z.abs()
        return z * (torch.relu(r + bias) / r)

    def loop(phases: Tensor, vectors: Tensor, weight: Tensor, x: Tensor, bias: Tensor) -> Tensor:
        d = torch.polar(torch.ones_like(phases), phases)
        first, second = (w * (math.sqrt(2.0) / torch.linalg.vector_norm(w)) for w in vectors.unbind())
        h, found = x.new_zeros(ROWS, N), []
        for drive in (x @ weight.mT).unbind():
            y = torch.fft.fft(h * d[0], norm="ortho")
            y = (y - (y @ first.conj())[:, None] * first)[:, op.permutation] * d[1]
            z = torch.fft.ifft(y, norm="ortho")
            h = activated((z - (z @ second.conj())[:, None] * second) * d[2] + drive, bias)
            found.append(h)
        return torch.stack(found)

    def through_matrix(phases: Tensor, vectors: Tensor, weight: Tensor, x: Tensor, bias: Tensor) -> Tensor:
        w = by_factors(phases, vectors, op.permutation, torch.eye(N, dtype=x.dtype))
        h, found = x.new_zeros(ROWS, N), []
        for drive in (x @ weight.mT).unbind():
            h = activated(h @ w + drive, bias)
            found.append(h)
        return torch.stack(found)

    def in_one_call(phases: Tensor, vectors: Tensor, weight: Tensor, x: Tensor, bias: Tensor) -> Tensor:
        transition = it.FourierProduct(phases, vectors, op.permutation)
        return it.recurrence(transition, x, weight, activation="modrelu", activation_bias=bias)

    def side(name: str, states: Callable[..., Tensor], wide: bool = False) -> Candidate:
        to = lambda t: t.to(torch.complex128 if t.is_complex() else torch.float64) if wide else t.clone()
        named = {"phases": op.phases, "vectors": op.vectors, "input_weight": v, "activation_bias": bias}
        leaves = {k: to(t).requires_grad_() for k, t in named.items()}
        phases, vectors, weight, own = leaves.values()
        return differentiable(name, leaves, lambda: states(phases, vectors, weight, to(x), own), to(cotangent))

    return Row(
        name=f"fourier recurrence {N} B{ROWS} T{STEPS}",
        ours=side("isometry", in_one_call),
        peers=[side("torch loop, fft", loop), side("torch loop, matrix", through_matrix)],
        reference=side("float64", through_matrix, True).results or dict,
        bars=[Bar("torch loop over factors", 5.0, 10.0, ("torch loop, fft",)), Bar("best torch", 1.0, 2.0)],
        flops=flops(N) * ROWS * STEPS,
        # W is unitary and modReLU nearly the identity: rounding errors of 500 steps add up on every side
        tolerance=(1e-4, 1e-3),
    )
