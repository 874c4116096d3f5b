"""The rotational unit of memory, forward and backward, all states in the loss: rotations alone, and with a memory.

Flops per pass: three products of 2 (2n) n T B with W, two of 2 (3n) d T B with U, for x needs no gradient, the
rotations' 65 n T B, and with a memory some 34 n^2 T B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import normalize

import isometry.torch as it
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row

INPUTS = 64
# through T steps, each with a rotation by its own state
TOLERANCE = (1e-3, 1e-2)
Reflect = Callable[[Tensor, Tensor], Tensor]


def rows() -> Iterator[Row]:
    yield make_row(0, (256, 32, 200), Bar("best loop", 3.0, 5.0))
    yield make_row(1, (64, 32, 100), Bar("best loop", 1.0, 3.0))


def make_row(lam: int, sizes: tuple[int, int, int], bar: Bar) -> Row:
    """The row without or with a memory, all tensors drawn from a seed."""
    n, batch, steps = sizes
    torch.manual_seed(0)
    x, cotangent = torch.randn(steps, batch, INPUTS), torch.randn(steps, batch, n)
    initial = {
        "w": torch.randn(2 * n, n) / n**0.5,
        "u": torch.randn(2 * n, INPUTS) / INPUTS**0.5,
        "b": torch.zeros(2 * n),
        "embed_weight": torch.randn(n, INPUTS) / INPUTS**0.5,
        "embed_bias": torch.zeros(n),
    }

    def leaves(dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
        return {k: v.to(dtype, copy=True).requires_grad_() for k, v in initial.items()}

    def by_loop(name: str, reflect: Reflect, dtype: torch.dtype = torch.float32) -> Candidate:
        own = leaves(dtype)
        return differentiable(name, own, loop(own, x.to(dtype), lam, reflect), cotangent.to(dtype))

    mine = leaves()
    return Row(
        name=f"RUM lambda {lam} n{n} B{batch} T{steps} d{INPUTS}",
        ours=differentiable("isometry", mine, lambda: it.rum(x, *mine.values(), lam=lam)[0], cotangent),
        peers=[by_loop("torch loop, addcmul", addcmul), by_loop("torch loop, baddbmm", baddbmm)],
        reference=by_loop("reference", addcmul, torch.float64).results or dict,
        bars=[bar],
        flops=(12.0 * n * (n + INPUTS) + 65 * n + 34 * n * n * lam) * batch * steps,
        tolerance=TOLERANCE,
        plan="cell",
    )


def addcmul(rows: Tensor, unit: Tensor) -> Tensor:
    """The rows (B, k, n) with each unit vector (B, n) reflected."""
    unit = unit.unsqueeze(1)
    return torch.addcmul(rows, torch.linalg.vecdot(rows, unit).unsqueeze(-1), unit, value=-2)


def baddbmm(rows: Tensor, unit: Tensor) -> Tensor:
    """The same by a product and an update of rank one."""
    return torch.baddbmm(rows, rows @ unit.unsqueeze(-1), unit.unsqueeze(1), alpha=-2)


def loop(leaves: dict[str, Tensor], x: Tensor, lam: int, reflect: Reflect) -> Callable[[], Tensor]:
    """U x and the embeddings of all steps and their directions at once; per step one product, and two reflections."""

    def forward() -> Tensor:
        w, u, b, embed_weight, embed_bias = leaves.values()
        n, batch, w = w.shape[1], x.shape[1], w.T
        flat, shape = x.flatten(0, 1), x.shape[:2]
        drives = torch.addmm(b, flat, u.T).unflatten(0, shape).unbind(0)
        embedded = torch.addmm(embed_bias, flat, embed_weight.T).unflatten(0, shape)
        starts = normalize(embedded, dim=-1).unbind(0)
        h, states = x.new_zeros(batch, n), []
        r = torch.eye(n, dtype=x.dtype).expand(batch, n, n)
        for drive, e, start in zip(drives, embedded.unbind(0), starts, strict=True):
            keep, tau = torch.addmm(drive, h, w).chunk(2, 1)
            middle = normalize(start + normalize(tau, dim=-1), dim=-1)
            if lam:
                # the rows of R_{t-1} H(middle) H(start)
                r = reflect(reflect(r, middle), start)
                turned = (r @ h.unsqueeze(-1)).squeeze(-1)
            else:
                turned = reflect(reflect(h.unsqueeze(1), start), middle).squeeze(1)
            h = torch.lerp(torch.relu(e + turned), h, torch.sigmoid(keep))
            states.append(h)
        return torch.stack(states)

    return forward
