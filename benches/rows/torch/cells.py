"""Gated cells, forward and backward, all states in the loss: the GRU with its reset before W_h, and after it; the GORU,
whose W_h is a Cayley transform, or a real mesh of few layers.

The peers are loops over the steps, with an orthogonal W_h formed once per sequence, by a solve or by the mesh on the
identity, and for the mesh also loops that apply it to the states of every step. Flops per pass: three products of
2 n^2 T B with each dense matrix of W, or the 6 n of each layer of a mesh, and two of 2 (3 n) d T B with U, for x needs
no gradient.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

import isometry.torch as it
from harness.row import Bar, Row
from rows.torch import formulas, sides
from rows.torch.sides import Call, Side, loop

N, BATCH, STEPS, INPUTS = 256, 32, 200, 64
SIZES = f"n{N} B{BATCH} T{STEPS} d{INPUTS}"
# through 200 contracting steps
TOLERANCE = (1e-4, 1e-3)
ORDER = [1, 0, 2]  # torch.nn.GRU's r, z, h in terms of z, r, h
LOOP, BEST_LOOP = "torch loop", Bar("best loop", 3.0, 4.0)
row = partial(sides.row, fixed=("x",), tolerance=TOLERANCE, plan="cell")


def gru() -> Iterator[Row]:
    # torch.gru takes its gates in another order, and a bias that has no gradient here
    form = {key: lambda t: t[ORDER].flatten(0, 1) for key in ("w", "u", "b")}
    pick = {key: lambda t: t.unflatten(0, (3, N))[ORDER] for key in form}
    yield gru_row("before", {LOOP: lambda w, u, b, x: before(w[:2], w[2], u, b, x)}, BEST_LOOP)
    after: dict[str, Call | Side] = {LOOP: gru_after, "torch.nn.GRU": Side(by_gru, form, pick)}
    yield gru_row("after", after, Bar("best of torch", 1.0, 2.0))


def gru_row(reset: Literal["before", "after"], peers: dict[str, Call | Side], bar: Bar) -> Row:
    flops = 6.0 * N * (3 * N + 2 * INPUTS) * BATCH * STEPS
    ours = lambda w, u, b, x: it.gru(x, w, u, b, reset=reset)
    return row(f"GRU reset {reset} {SIZES}", lambda: drawn(3), ours, peers, [bar], flops)


def goru() -> Iterator[Row]:
    rng = torch.Generator().manual_seed(1)
    upper = it.Cayley.random(N, dtype=torch.float64, generator=rng).upper.float()
    yield goru_row("cayley", upper, it.Cayley, solved, 2.0 * N)
    rng.manual_seed(2)
    for name, kind in (("2 layers", formulas.Mesh(N, 2)), ("fft", formulas.Mesh(N, None))):
        theta = kind.random(torch.float32, rng)["theta"]
        matrix = lambda theta, kind=kind: kind.by_slices(theta)(torch.eye(N, dtype=theta.dtype)).T
        yield goru_row(f"mesh {name}", theta, kind.operator, matrix, 6.0 * kind.layers)


def goru_row(
    name: str, point: Tensor, law: Callable[[Tensor], it.Operator], matrix: Callable[[Tensor], Tensor], per_state: float
) -> Row:
    """A row of one transition and its parameters; `per_state` flops of W_h for each number of a state."""
    loops = {LOOP: lambda w, u, b, p, x: before(w, matrix(p), u, b, x)}
    draw, ours = lambda: drawn(2, parameters=point), lambda w, u, b, p, x: it.goru(law(p), x, w, u, b)
    flops = (6.0 * N * (2 * N + 2 * INPUTS) + 3 * N * per_state) * BATCH * STEPS
    return row(f"GORU {name} {SIZES}", draw, ours, loops, [BEST_LOOP], flops)


def drawn(matrices: int, **parameters: Tensor) -> dict[str, Tensor]:
    """The dense matrices of W, then U and b of all gates, what an orthogonal W_h has, and x."""
    bias = torch.zeros(3, N)
    bias[0] = 1
    return {
        "w": torch.randn(matrices, N, N) / N**0.5,
        "u": torch.randn(3, N, INPUTS) / INPUTS**0.5,
        "b": bias,
        **parameters,
        "x": torch.randn(STEPS, BATCH, INPUTS),
    }


# ---------------------------------------------------------------- the peers


def drives(x: Tensor, u: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """U x + b of all steps and gates at once: of z and r, and of c."""
    drive = torch.addmm(b.flatten(), x.flatten(0, 1), u.flatten(0, 1).T).unflatten(0, x.shape[:2])
    return drive.split((2 * N, N), -1)


def before(w: Tensor, of_c: Tensor, u: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """The states with reset "before", of W_z and W_r, and of W_h: one product for z and r per step."""
    gates, of_c = w.flatten(0, 1).T, of_c.T

    def step(h: Tensor, to_gates: Tensor, to_c: Tensor) -> Tensor:
        z, r = torch.sigmoid(torch.addmm(to_gates, h, gates)).chunk(2, 1)
        return torch.lerp(torch.tanh(torch.addmm(to_c, r * h, of_c)), h, z)

    return loop(step, *drives(x, u, b))


def gru_after(w: Tensor, u: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """One product for all three gates per step."""
    every = w.flatten(0, 1).T

    def step(h: Tensor, to_gates: Tensor, to_c: Tensor) -> Tensor:
        of_gates, of_c = (h @ every).split((2 * N, N), -1)
        z, r = torch.sigmoid(to_gates + of_gates).chunk(2, 1)
        return torch.lerp(torch.tanh(torch.addcmul(to_c, r, of_c)), h, z)

    return loop(step, *drives(x, u, b))


def by_gru(w: Tensor, u: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """torch.nn.GRU's function."""
    start, other = x.new_zeros(1, BATCH, N), torch.zeros_like(b)
    return torch.gru(x, start, (u, w, b, other), True, 1, 0.0, True, False, False)[0]


def solved(upper: Tensor) -> Tensor:
    """(I + A)^-1 (I - A) from the packed triangle."""
    square = torch.zeros(N, N, dtype=upper.dtype).index_put(tuple(torch.triu_indices(N, N, 1)), upper)
    return formulas.cayley(square)


# ---------------------------------------------------------------- the rotational unit of memory

# through T steps, each with a rotation by its own state
THROUGH_ROTATIONS = (1e-3, 1e-2)


def rum() -> Iterator[Row]:
    yield rum_row(0, (256, 32, 200), Bar("best loop", 3.0, 5.0))
    yield rum_row(1, (64, 32, 100), Bar("best loop", 1.0, 3.0))


def rum_row(lam: int, sizes: tuple[int, int, int], bar: Bar) -> Row:
    """The row without or with a memory."""
    n, batch, steps = sizes

    def draw() -> dict[str, Tensor]:
        return {
            "w": torch.randn(2 * n, n) / n**0.5,
            "u": torch.randn(2 * n, INPUTS) / INPUTS**0.5,
            "b": torch.zeros(2 * n),
            "embed_weight": torch.randn(n, INPUTS) / INPUTS**0.5,
            "embed_bias": torch.zeros(n),
            "x": torch.randn(steps, batch, INPUTS),
        }

    name, flops = (
        f"RUM lambda {lam} n{n} B{batch} T{steps} d{INPUTS}",
        12.0 * n * (n + INPUTS) + 65 * n + 34 * n * n * lam,
    )
    ours = lambda *weights_x: it.rum(weights_x[-1], *weights_x[:-1], lam=lam)[0]
    return row(
        name, draw, ours, {LOOP: partial(rum_loop, lam=lam)}, [bar], flops * batch * steps, tolerance=THROUGH_ROTATIONS
    )


def rum_loop(
    w: Tensor, u: Tensor, b: Tensor, embed_weight: Tensor, embed_bias: Tensor, x: Tensor, *, lam: int
) -> Tensor:
    """U x and the embeddings of all steps and their directions at once; per step one product, and two reflections."""
    flat, shape, n, w = x.flatten(0, 1), x.shape[:2], w.shape[1], w.T
    drives = torch.addmm(b, flat, u.T).unflatten(0, shape)
    embedded = torch.addmm(embed_bias, flat, embed_weight.T).unflatten(0, shape)
    memory = torch.eye(n, dtype=x.dtype).expand(shape[1], n, n)

    def step(h: Tensor, drive: Tensor, start: Tensor, e: Tensor) -> Tensor:
        nonlocal memory
        keep, tau = torch.addmm(drive, h, w).chunk(2, 1)
        middle = normalize(start + normalize(tau, dim=-1), dim=-1).unsqueeze(1)
        if lam:
            # the rows of R_{t-1} H(middle) H(start)
            memory = reflect(reflect(memory, middle), start.unsqueeze(1))
            turned = (memory @ h.unsqueeze(-1)).squeeze(-1)
        else:
            turned = reflect(reflect(h.unsqueeze(1), start.unsqueeze(1)), middle).squeeze(1)
        return torch.lerp(torch.relu(e + turned), h, torch.sigmoid(keep))

    return loop(step, drives, normalize(embedded, dim=-1), embedded)


def reflect(x: Tensor, u: Tensor) -> Tensor:
    """Rows (B, k, n) reflected by unit vectors (B, 1, n)."""
    return torch.addcmul(x, torch.linalg.vecdot(x, u).unsqueeze(-1), u, value=-2)


# ---------------------------------------------------------------- cells whose state is a pair


def rivals() -> Iterator[Row]:
    yield pair_row("CoRNN", (2, 1), cornn_loop, lambda *a: it.cornn(*a, dt=DT, gamma=GAMMA, epsilon=EPSILON)[0])
    yield pair_row("LEM", (4, 4), lem_loop, lambda *a: it.lem(*a, dt=DT)[0])


PAIR = (128, 50, 400)  # n, B and T
DT, GAMMA, EPSILON = 0.06, 66.0, 15.0


def pair_row(name: str, matrices: tuple[int, int], peer: Call, ours: Call) -> Row:
    """The first part of the state in the loss, as in a layer."""
    (n, batch, steps), (of_w, of_u) = PAIR, matrices

    def draw() -> dict[str, Tensor]:
        lead = (of_u,) if of_u > 1 else ()
        return {
            "x": torch.randn(steps, batch, INPUTS),
            "w": torch.randn(of_w, n, n) / n**0.5,
            "u": torch.randn(*lead, n, INPUTS) / INPUTS**0.5,
            "b": torch.zeros(*lead, n),
        }

    flops = (6.0 * n * of_w * n + 4.0 * n * of_u * INPUTS) * batch * steps
    return row(f"{name} n{n} B{batch} T{steps} d{INPUTS}", draw, ours, {LOOP: peer}, [BEST_LOOP], flops)


def cornn_loop(x: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Tensor:
    """One product for y and z per step."""
    drive, both = x @ u.T + b, torch.cat((w[0], w[1]), -1).T
    z = torch.zeros_like(drive[0])

    def step(y: Tensor, of_step: Tensor) -> Tensor:
        nonlocal z
        force = torch.tanh(torch.addmm(of_step, torch.cat((y, z), -1), both)) - GAMMA * y - EPSILON * z
        z = z + DT * force
        return y + DT * z

    return loop(step, drive)


def lem_loop(x: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Tensor:
    """One product for three of the gates per step, and one for the fourth."""
    n = w.shape[-1]
    drives = (x @ u.flatten(0, 1).T + b.flatten()).split((3 * n, n), -1)
    of_y, of_z, z = w[:3].flatten(0, 1).T, w[3].T, torch.zeros_like(drives[1][0])

    def step(y: Tensor, gates: Tensor, own: Tensor) -> Tensor:
        nonlocal z
        s_1, s_2, t = torch.addmm(gates, y, of_y).chunk(3, 1)
        z = torch.lerp(z, torch.tanh(t), DT * torch.sigmoid(s_1))
        return torch.lerp(y, torch.tanh(torch.addmm(own, z, of_z)), DT * torch.sigmoid(s_2))

    return loop(step, *drives)
