"""The gated orthogonal recurrent unit, reset before, forward and backward, all states in the loss: W_h a Cayley
transform, and a real mesh of few layers.

The peers are loops over the steps with W_h formed once per sequence, by a solve or by the mesh on the identity, and for
the mesh also loops that apply it to the states of every step. Flops per pass: three products of 2 (2 n) n T B with W_z
and W_r, two of 2 (3 n) d T B with U, and three of 2 n^2 T B with a dense W_h, or the 6 n of each layer of the mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench import mesh
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.gru import BATCH, INPUTS, STEPS, TOLERANCE, N, addcmul, before, by_matrix, lerp
from isometry.cli.bench.row import Bar, Candidate, Row

#: Of the parameters: W_h y added to something.
Own = Callable[[Tensor], Callable[[Tensor, Tensor], Tensor]]
_BAR = Bar("best loop", 3.0, 4.0)


def rows() -> Iterator[Row]:
    skew = it.Cayley.random(N, dtype=torch.float64, rng=torch.Generator().manual_seed(1)).upper
    yield make_row("cayley", skew, it.Cayley, {"W formed once": formed(solved)}, 2.0 * N)
    rng = torch.Generator().manual_seed(2)
    yield of_mesh("2 layers", it.Mesh.random(N, layers=2, dtype=torch.float64, rng=rng))
    yield of_mesh("fft", it.Mesh.random(N, layout="fft", dtype=torch.float64, rng=rng))


def of_mesh(name: str, op: it.Mesh) -> Row:
    """The row of meshes of its kind."""

    def matrix(theta: Tensor) -> Tensor:
        return mesh.by_slices(op, {"theta": theta})(torch.eye(N, dtype=theta.dtype)).T

    def stepwise(apply: mesh.Apply) -> Own:
        def own(theta: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
            step = apply(op, {"theta": theta})
            return lambda to_c, y: to_c + step(y)

        return own

    peers = {"W formed once": formed(matrix)} | {f"{key}, W": stepwise(apply) for key, apply in mesh.PEERS.items()}
    return make_row(f"mesh {name}", op.theta, lambda theta: mesh.rebuilt(op, {"theta": theta}), peers, 6.0 * op.layers)


def formed(matrix: Callable[[Tensor], Tensor]) -> Own:
    """W_h formed once per sequence."""
    return lambda parameters: by_matrix(matrix(parameters))


def make_row(
    name: str, point: Tensor, law: Callable[[Tensor], it.Operator], peers: dict[str, Own], per_state: float
) -> Row:
    """A row of one transition and its parameters; `per_state` flops of W_h for each number of a state."""
    torch.manual_seed(0)
    x, cotangent = torch.randn(STEPS, BATCH, INPUTS), torch.randn(STEPS, BATCH, N)
    initial = {"w": torch.randn(2, N, N) / N**0.5, "u": torch.randn(3, N, INPUTS) / INPUTS**0.5, "b": torch.zeros(3, N)}
    initial["b"][0] = 1
    initial["parameters"] = point

    def leaves(dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
        return {k: v.to(dtype, copy=True).requires_grad_() for k, v in initial.items()}

    def by_loop(name: str, own: Own, blend: Callable[..., Tensor], dtype: torch.dtype = torch.float32) -> Candidate:
        mine, inputs = leaves(dtype), x.to(dtype)

        def forward() -> Tensor:
            w, u, b, p = mine.values()
            return before(inputs, w, own(p), u, b, blend)

        return differentiable(name, mine, forward, cotangent.to(dtype))

    mine = leaves()

    def ours() -> Tensor:
        w, u, b, p = mine.values()
        return it.goru(law(p), x, w, u, b)

    blends = {"lerp": lerp, "addcmul": addcmul}
    loops = [by_loop(f"loop, {w}, {how}", own, blends[how]) for w, own in peers.items() for how in blends]
    return Row(
        name=f"GORU {name} n{N} B{BATCH} T{STEPS} d{INPUTS}",
        ours=differentiable("isometry", mine, ours, cotangent),
        peers=loops,
        reference=by_loop("reference", next(iter(peers.values())), lerp, torch.float64).results or dict,
        bars=[_BAR],
        flops=(6.0 * N * (2 * N + 2 * INPUTS) + 3 * N * per_state) * BATCH * STEPS,
        tolerance=TOLERANCE,
        plan="cell",
    )


def solved(upper: Tensor) -> Tensor:
    """(I + A)^-1 (I - A)"""
    i, j = torch.triu_indices(N, N, 1)
    half = torch.zeros(N, N, dtype=upper.dtype).index_put((i, j), upper)
    skew, eye = half - half.T, torch.eye(N, dtype=upper.dtype)
    return torch.linalg.solve(eye + skew, eye - skew)
