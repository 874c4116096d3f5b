"""The gated orthogonal recurrent unit, reset before, forward and backward, all states in the loss: W_h a Cayley
transform, and a real mesh of few layers.

The peers are loops over the steps with W_h formed once per sequence, by a solve or by the mesh on the identity, and for
the mesh also one that applies it to every step's states. Flops per pass: three products of 2 (2 n) n T B with W_z and
W_r, two of 2 (3 n) d T B with U, and three of 2 n^2 T B with a dense W_h, or the 6 n of each layer of the mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.gru import BATCH, INPUTS, STEPS, TOLERANCE, N, addcmul, before, by_matrix, lerp
from isometry.cli.bench.row import Bar, Candidate, Row

Own = Callable[[Tensor], Callable[[Tensor, Tensor], Tensor]]
_BAR = Bar("best loop", 3.0, 4.0)


def rows() -> Iterator[Row]:
    skew = it.Cayley.random(N, dtype=torch.float64, rng=torch.Generator().manual_seed(1)).upper
    yield make_row("cayley", skew, it.Cayley, {"W formed once": lambda p: by_matrix(solved(p))}, 2.0 * N)
    for name, layers, layout in (("2 layers", 2, "brick"), ("fft", None, "fft")):
        theta = it.Mesh.random(N, layers=layers, layout=layout, dtype=torch.float64).theta

        def mesh(p: Tensor, layers: int | None = layers, layout: str = layout) -> it.Mesh:
            return it.Mesh(p, n=N, layers=layers, layout=layout)

        pairs = turns(N, layers, layout)
        peers: dict[str, Own] = {
            "W formed once": lambda p, pairs=pairs: by_matrix(turned(torch.eye(N, dtype=p.dtype), p, pairs).T),
            "W by pairs": lambda p, pairs=pairs: lambda to_c, y: to_c + turned(y, p, pairs),
        }
        yield make_row(f"mesh {name}", theta, mesh, peers, 6.0 * len(pairs))


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
    loops = [by_loop(f"torch loop, {w}, {how}", own, blends[how]) for w, own in peers.items() for how in blends]
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


def turns(n: int, layers: int | None, layout: str) -> list[tuple[int, int]]:
    """(first coordinate, distance of a pair) of the layers of a mesh, the one that acts last first."""
    if layout == "fft":
        return [(0, n >> k) for k in range(1, n.bit_length())]
    return [(k % 2, 1) for k in range(layers or 0)]


def turned(y: Tensor, theta: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
    """W y of rows, layer by layer: pairs as slices."""
    sin, cos, end = theta.sin(), theta.cos(), theta.shape[0]
    for first, apart in reversed(pairs):
        count = (N - 2 * first) // 2
        own, end = slice(end - count, end), end - count
        s, c = sin[own].unflatten(0, (-1, apart)), cos[own].unflatten(0, (-1, apart))
        i, j = y[:, first : N - first].unflatten(1, (-1, 2, apart)).unbind(2)
        new = torch.stack((s * i + c * j, c * i - s * j), 2).flatten(1)
        y = torch.cat((y[:, :first], new, y[:, N - first :]), 1) if first else new
    return y
