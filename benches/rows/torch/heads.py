"""Block-diagonal recurrent matrices, forward and backward, all states in the loss: a scoRNN of eight heads beside one
with the same W whole, beside its heads one after another and a loop; a GRU of eight blocks beside loops over blocks.

Flops per pass: three products of 2 n^2 / h T B with each matrix of W, and two with V or U, for x needs no gradient.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, randn

import isometry.torch as it
from harness.row import Bar, Row
from isometry._cells.gru import GRU, setting
from isometry.torch.sequences._sequence import Options, run
from rows.torch import formulas, sides
from rows.torch.sides import loop

HEADS, N = 8, 512
EACH = N // HEADS
STEPS = 784, 512
# through up to 784 steps; a gradient jumps if rounding moves one state across the kink of modReLU
TOLERANCE = (2e-4, 1e-2)
row = partial(sides.row, fixed=("x",), tolerance=TOLERANCE, plan="cell")


def rows() -> Iterator[Row]:
    yield scornn()
    yield gru()


def scornn() -> Row:
    steps, batch, inputs = STEPS[0], 50, 1

    def draw() -> dict[str, Tensor]:
        upper = it.Cayley.random(EACH, batch_shape=(HEADS,), dtype=torch.float64).upper.float()
        bias = 0.01 * randn(N)
        return {"upper": upper, "v": randn(N, inputs) / 8, "bias": bias, "x": randn(steps, batch, inputs)}

    def blocks(upper: Tensor) -> it.Cayley:
        return it.Cayley(upper, signs=formulas.half_signs(EACH).to(upper.dtype).expand(HEADS, -1))

    def states(w: it.Operator, v: Tensor, bias: Tensor, x: Tensor) -> Tensor:
        return it.recurrence(w, x, v, activation="modrelu", activation_bias=bias)

    def one_by_one(upper: Tensor, v: Tensor, bias: Tensor, x: Tensor) -> Tensor:
        parts = zip(blocks(upper), v.split(EACH), bias.split(EACH), strict=True)
        return torch.cat([states(w, *own, x) for w, *own in parts], -1)

    def by_loop(upper: Tensor, v: Tensor, bias: Tensor, x: Tensor) -> Tensor:
        w = blocks(upper).matrix()

        def step(h: Tensor, drive: Tensor) -> Tensor:
            z = drive + torch.einsum("hpq,bhq->bhp", w, h.unflatten(-1, (HEADS, EACH))).flatten(-2)
            return torch.sign(z) * torch.relu(z.abs() + bias)

        return loop(step, x @ v.T)

    whole = lambda upper, *rest: states(it.Dense(torch.block_diag(*blocks(upper).matrix())), *rest)
    peers = {"one head": whole, "heads one by one": one_by_one, "torch loop, einsum": by_loop}
    bars = [Bar("one head", 4.0, 6.0, ("one head",)), Bar("one by one", 1.0, 1.5, ("heads one by one",))]
    ours = lambda upper, *rest: states(it.BlockDiagonal(blocks(upper)), *rest)
    name, flops = f"scoRNN {HEADS} heads n{N} B{batch} T{steps} d{inputs}", 6.0 * N * EACH + 4 * N * inputs
    return row(name, draw, ours, peers, bars, flops * batch * steps)


def gru() -> Row:
    steps, batch = STEPS[1], 16

    def draw() -> dict[str, Tensor]:
        weights = {"w": randn(HEADS, 3, EACH, EACH) / EACH**0.5, "u": randn(3, N, N) / N**0.5}
        return weights | {"b": torch.zeros(3, N), "x": randn(steps, batch, N)}

    def ours(w: Tensor, u: Tensor, b: Tensor, x: Tensor) -> Tensor:
        given = {"x": x, "w": w, "u": u, "b": b, "h0": None, "hidden_bias": None}
        given |= {"activation_bias": None, "start_state": None}
        return run(GRU, None, given, Options("tanh", 0.1, setting("before"), None, False, heads=HEADS))[0]

    def product(w: Tensor, h: Tensor) -> Tensor:
        return torch.bmm(h.unflatten(-1, (HEADS, EACH)).transpose(0, 1), w.mT).transpose(0, 1)

    def by_loop(w: Tensor, u: Tensor, b: Tensor, x: Tensor) -> Tensor:
        drive = torch.addmm(b.flatten(), x.flatten(0, 1), u.flatten(0, 1).T).unflatten(0, x.shape[:2])
        gates, own = w[:, :2].flatten(1, 2), w[:, 2]

        def step(h: Tensor, z: Tensor, r: Tensor, c: Tensor) -> Tensor:
            of_z, of_r = product(gates, h).split(EACH, -1)
            z, r = torch.sigmoid(z + of_z.flatten(-2)), torch.sigmoid(r + of_r.flatten(-2))
            return torch.lerp(torch.tanh(c + product(own, r * h).flatten(-2)), h, z)

        return loop(step, *drive.split(N, -1))

    name, flops = f"GRU {HEADS} blocks n{N} B{batch} T{steps} d{N}", (18.0 * N * EACH + 12.0 * N * N) * batch * steps
    return row(name, draw, ours, {"torch loop, bmm": by_loop}, [Bar("torch loop", 5.0, 8.0)], flops)
