"""The gated recurrent unit, forward and backward, all states in the loss: reset before W_h, and after it.

Flops per pass: three products of 2 (3 n) n T B with W, and two of 2 (3 n) d T B with U, for x needs no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row

N, BATCH, STEPS, INPUTS = 256, 32, 200, 64
# through 200 contracting steps
TOLERANCE = (1e-4, 1e-3)
ORDER = [1, 0, 2]  # torch.nn.GRU's r, z, h in terms of z, r, h


def rows() -> Iterator[Row]:
    yield make_row("before", Bar("best loop", 3.0, 4.0))
    yield make_row("after", Bar("best of torch", 1.0, 2.0))


def make_row(reset: str, bar: Bar) -> Row:
    """The row of one reset, all tensors drawn from a seed."""
    torch.manual_seed(0)
    x, cotangent = torch.randn(STEPS, BATCH, INPUTS), torch.randn(STEPS, BATCH, N)
    initial = {"w": torch.randn(3, N, N) / N**0.5, "u": torch.randn(3, N, INPUTS) / INPUTS**0.5, "b": torch.zeros(3, N)}
    initial["b"][0] = 1

    def leaves(dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
        return {k: v.to(dtype, copy=True).requires_grad_() for k, v in initial.items()}

    def by_loop(name: str, blend: Callable[..., Tensor], dtype: torch.dtype = torch.float32) -> Candidate:
        own = leaves(dtype)
        return differentiable(name, own, loop(own, x.to(dtype), reset, blend), cotangent.to(dtype))

    mine = leaves()
    peers = [by_loop("torch loop, lerp", lerp), by_loop("torch loop, addcmul", addcmul)]
    if reset == "after":
        peers.append(layer(initial, x, cotangent))
    return Row(
        name=f"GRU reset {reset} n{N} B{BATCH} T{STEPS} d{INPUTS}",
        ours=differentiable("isometry", mine, lambda: it.gru(x, *mine.values(), reset=reset), cotangent),
        peers=peers,
        reference=by_loop("reference", lerp, torch.float64).results or dict,
        bars=[bar],
        flops=6.0 * N * (3 * N + 2 * INPUTS) * BATCH * STEPS,
        tolerance=TOLERANCE,
        plan="cell",
    )


def lerp(c: Tensor, h: Tensor, z: Tensor) -> Tensor:
    return torch.lerp(c, h, z)


def addcmul(c: Tensor, h: Tensor, z: Tensor) -> Tensor:
    return torch.addcmul(c, z, h - c)


def loop(leaves: dict[str, Tensor], x: Tensor, reset: str, blend: Callable[..., Tensor]) -> Callable[[], Tensor]:
    """One product for z and r (with reset "after" for all three) per step."""

    def forward() -> Tensor:
        w, u, b = leaves.values()
        if reset == "before":
            return before(x, w[:2], by_matrix(w[2]), u, b, blend)
        every = w.flatten(0, 1).T
        h, states = x.new_zeros(x.shape[1], w.shape[1]), []
        for to_gates, to_c in zip(*drives(x, u, b), strict=True):
            of_gates, of_c = (h @ every).split((2 * N, N), -1)
            z, r = torch.sigmoid(to_gates + of_gates).chunk(2, 1)
            h = blend(torch.tanh(torch.addcmul(to_c, r, of_c)), h, z)
            states.append(h)
        return torch.stack(states)

    return forward


def drives(x: Tensor, u: Tensor, b: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """U x + b of all steps and gates at once: of z and r, and of c, step by step."""
    drive = torch.addmm(b.flatten(), x.flatten(0, 1), u.flatten(0, 1).T).unflatten(0, x.shape[:2])
    gates, own = (part.unbind(0) for part in drive.split((2 * N, N), -1))
    return gates, own


def by_matrix(w: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """What is added to W_h y, and y, to the sum."""
    return lambda to_c, y: torch.addmm(to_c, y, w.T)


def before(
    x: Tensor,
    w: Tensor,
    own: Callable[[Tensor, Tensor], Tensor],
    u: Tensor,
    b: Tensor,
    blend: Callable[..., Tensor],
) -> Tensor:
    """The states with reset "before", of W_z and W_r, and W_h added to something."""
    gates = w.flatten(0, 1).T
    h, states = x.new_zeros(x.shape[1], w.shape[1]), []
    for to_gates, to_c in zip(*drives(x, u, b), strict=True):
        z, r = torch.sigmoid(torch.addmm(to_gates, h, gates)).chunk(2, 1)
        h = blend(torch.tanh(own(to_c, r * h)), h, z)
        states.append(h)
    return torch.stack(states)


def layer(initial: dict[str, Tensor], x: Tensor, cotangent: Tensor) -> Candidate:
    """torch.nn.GRU with the same matrices; its second bias is zero and has no gradient."""
    gru = torch.nn.GRU(INPUTS, N)
    own = dict(gru.named_parameters())
    leaves: dict[str, Tensor] = {"w": own["weight_hh_l0"], "u": own["weight_ih_l0"], "b": own["bias_ih_l0"]}
    with torch.no_grad():
        for key, leaf in leaves.items():
            leaf.copy_(initial[key][ORDER].flatten(0, 1))
        own["bias_hh_l0"].zero_()
    own["bias_hh_l0"].requires_grad_(False)

    def unpacked(key: str) -> Callable[[Tensor], Tensor]:
        return lambda gradient: gradient.unflatten(0, (3, N))[ORDER].reshape(initial[key].shape)

    pick = {key: unpacked(key) for key in leaves}
    return differentiable("torch.nn.GRU", leaves, lambda: gru(x)[0], cotangent, pick)
