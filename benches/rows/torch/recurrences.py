"""The rows of recurrences h_t = phi(W h_{t-1} + V x_t), forward and backward, all states in the loss: the six of the
papers, and those whose W is a Kronecker product, a Fourier product or a mesh.

Flops per pass: three products of 2 n^2 T B if W is dense, 12 n m T B if its m factors are applied; else those of
operators.py for every row of a state.
"""

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor, randn

import isometry.torch as it
from harness.row import Bar, Row
from harness.sizes import RECURRENCES, Sequences
from rows.torch import formulas
from rows.torch.operators import B, fourier_factors, fourier_flops, kronecker_factors, mesh_label
from rows.torch.sides import Call, Side, loop, row

DENSE, FREE = "torch loop, dense W", "torch.nn.RNN relu"
STEPS = 500
# through up to 1020 steps; a gradient jumps by up to 4e-3 if rounding moves one state across a kink, in torch too
PAPERS = (2e-4, 1e-2)


def papers() -> Iterator[Row]:
    for work in RECURRENCES:
        yield paper(work)


def paper(work: Sequences) -> Row:
    """One workload; `transition` is a full square of a scoRNN's skew matrix, else the reflection vectors."""
    n, m = work.n, work.m

    def draw() -> dict[str, Tensor]:
        first = {"transition": torch.tril(randn(n, m))} if m else {"transition": randn(n, n) * 0.05}
        first |= {"input_weight": randn(n, work.inputs) * 0.1, "bias": torch.zeros(n)}
        first["x"] = randn(work.steps, work.batch, work.inputs)
        return first if m else first | {"signs": formulas.half_signs(n)}

    bars = [Bar("best orthogonal", 1.7, 2.0, (DENSE,)), Bar("torch.nn.RNN", 1.5, 2.0, (FREE,))]
    # a free matrix, with another bias of its own
    free = {"transition": lambda p: torch.nn.init.orthogonal_(p.new_empty(n, n)), "bias": lambda b: b.expand(2, n)}
    peers: dict[str, Call | Side] = {DENSE: ornn if m else scornn, FREE: Side(by_rnn, free, {}, checked=False)}
    more: dict[str, Any] = {"fixed": ("x", "signs"), "form": {} if m else {"transition": formulas.packed}}
    more["share"] = (0.65, 0.80) if n >= 170 and work.batch >= 20 else None
    ours, flops = our_ornn if m else our_scornn, 6.0 * n * (n if work.route == "dense" else 2 * m)
    flops *= work.batch * work.steps
    return row(str(work), draw, ours, peers, bars, flops, tolerance=PAPERS, plan=work.route, **more)


def our_scornn(upper: Tensor, weight: Tensor, bias: Tensor, x: Tensor, signs: Tensor) -> Tensor:
    return it.recurrence(it.Cayley(upper, signs=signs), x, weight, activation="modrelu", activation_bias=bias)


def our_ornn(vectors: Tensor, weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    return it.recurrence(it.Householder(vectors), x, weight, bias=bias, activation="leaky_relu")


def scornn(p: Tensor, weight: Tensor, bias: Tensor, x: Tensor, signs: Tensor) -> Tensor:
    """One addmm and the activation per step."""
    w = formulas.cayley(p, signs).T
    return loop(lambda h, drive: formulas.modrelu(torch.addmm(drive, h, w), bias), x @ weight.T)


def ornn(u: Tensor, weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    w = formulas.wy_matrix(u).T
    return loop(lambda h, drive: formulas.leaky(torch.addmm(drive, h, w), bias), x @ weight.T)


def by_rnn(w: Tensor, weight: Tensor, bias: Tensor, x: Tensor, *_: Tensor) -> Tensor:
    """torch's fused RNN with a free matrix: a different function, so values are not compared."""
    start = x.new_zeros(1, x.shape[1], len(w))
    return torch.rnn_relu(x, start, (weight, w, *bias.unbind()), True, 1, 0.0, True, False, False)[0]


# ---------------------------------------------------------------- factored transitions


def transition(
    name: str,
    arrays: Callable[[], dict[str, Tensor]],
    law: Callable[..., it.Operator],
    peers: dict[str, Callable[..., formulas.Step]],
    bars: list[Bar],
    flops: float,
    *,
    inputs: int = 2,
    dtype: torch.dtype = torch.float32,
    modrelu: bool = False,
    **more: Any,
) -> Row:
    """A row of h <- tanh(W h + V x), or modReLU; a peer turns the arrays of W, once a sequence, into h -> W h."""

    def draw() -> dict[str, Tensor]:
        bias = {"activation_bias": -0.01 * torch.ones(512)} if modrelu else {}
        v, x = randn(512, inputs, dtype=dtype) / 4, randn(STEPS, B, inputs, dtype=dtype)
        return arrays() | {"input_weight": v} | bias | {"x": x}

    def ours(*given: Tensor) -> Tensor:
        if not modrelu:
            return it.recurrence(law(*given[:-2]), given[-1], given[-2])
        *own, v, bias, x = given
        return it.recurrence(law(*own), x, v, activation="modrelu", activation_bias=bias)

    def by_loop(prepared: Callable[..., formulas.Step]) -> Call:
        def states(*given: Tensor) -> Tensor:
            *own, v, x = given if not modrelu else (*given[:-2], given[-1])
            apply = prepared(*own)
            phi = (lambda z: formulas.modrelu(z, given[-2])) if modrelu else formulas.tanh
            return loop(lambda h, drive: phi(apply(h) + drive), x @ v.mT)

        return states

    loops = {key: by_loop(prepared) for key, prepared in peers.items()}
    fixed = ("permutation", "x")
    return row(f"{name} T{STEPS}", draw, ours, loops, bars, flops * B * STEPS, fixed=fixed, **more)


def kronecker() -> Iterator[Row]:
    draw, bars = partial(kronecker_factors, torch.float32), [Bar("torch loop", 1.5, 3.0)]

    def multiplied(*factors: Tensor) -> formulas.Step:
        transposed = reduce(torch.kron, factors).mT
        return lambda h: h @ transposed

    name, flops = f"kronecker recurrence 2^9 B{B}", 12.0 * 512 * (9 + 2)
    yield transition(
        name, draw, lambda *factors: it.Kronecker(factors), {"torch loop, matrix": multiplied}, bars, flops
    )


def fourier() -> Iterator[Row]:
    draw, flops = partial(fourier_factors, 512), fourier_flops(512)
    peers, bars = {"torch loop, fft": formulas.fourier_step}, [Bar("torch loop", 5.0, 10.0)]
    # W is unitary and modReLU nearly the identity: rounding errors of 500 steps add up on every side
    more: dict[str, Any] = {"tolerance": (1e-4, 1e-3), "inputs": 10, "modrelu": True, "dtype": torch.complex64}
    yield transition(f"fourier recurrence 512 B{B}", draw, it.FourierProduct, peers, bars, flops, **more)


def mesh() -> Iterator[Row]:
    kind = formulas.Mesh(512, 2)
    peers, bars = {f"{name}, loop": prepared for name, prepared in kind.peers().items()}, [Bar("torch loop", 5.0, 10.0)]
    for dtype, each in ((torch.float32, 12.0), (torch.complex64, 36.0)):
        name, draw, flops = f"mesh recurrence {mesh_label(kind, dtype)}", partial(kind.random, dtype), each * 512 * 4
        yield transition(name, draw, kind.operator, peers, bars, flops, dtype=dtype)
