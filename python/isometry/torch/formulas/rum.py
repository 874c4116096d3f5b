"""The rotational unit of memory by the textbook loop.

Its tensors: x (T, B, d), w (2n, n), u (3n, d) and b (3n,) with the rows of u, tau and e, h0 (B, n), r0 (B, n, n),
activation_bias (units,).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ._precision import full_precision
from .activation import activate
from .rotation import reflections, turned_rows, unit


class Setting(NamedTuple):
    """What a rotational unit computes, apart from its tensors."""

    memory: bool
    eta: float | None
    activation: str
    slope: float
    lengths: Tensor | None
    reverse: bool


@full_precision
def states(
    setting: Setting,
    x: Tensor,
    w: Tensor,
    u: Tensor,
    b: Tensor | None,
    h0: Tensor | None,
    r0: Tensor | None,
    activation_bias: Tensor | None,
) -> tuple[Tensor, ...]:
    """The states, and the memory after them if there is one."""
    memory, eta, activation, slope, lengths, reverse = setting
    steps, batch = x.shape[:2]
    n = w.shape[-1]
    if lengths is not None:
        inside = torch.arange(steps, device=x.device)[:, None, None] < lengths[:, None]
        # What lies behind a sequence's end must not reach a gradient, not even as 0 * NaN.
        x = torch.where(inside, x, torch.zeros_like(x))
    drive = x @ u.mT
    drives = (drive if b is None else drive + b).unbind(0)
    h = drives[0].new_zeros((batch, n)) if h0 is None else h0
    r = (torch.eye(n, dtype=x.dtype, device=x.device).expand(batch, n, n) if r0 is None else r0) if memory else None
    found: list[Tensor] = []
    for t in reversed(range(steps)) if reverse else range(steps):
        from_x, e = drives[t].split((2 * n, n), -1)
        keep, tau = (h @ w.mT + from_x).split(n, -1)
        keep = torch.sigmoid(keep)
        first, second = reflections(e, tau)
        if r is None:
            turned = turned_rows(h.unsqueeze(-2), first, second).squeeze(-2)
        else:
            later = turned_rows(r, second, first)
            r = later if lengths is None else torch.where(inside[t].unsqueeze(-1), later, r)
            turned = (r @ h.unsqueeze(-1)).squeeze(-1)
        k = activate(e + turned, activation, activation_bias, slope)
        new = keep * h + (1 - keep) * k
        if eta is not None:
            direction, live = unit(new)
            new = torch.where(live, eta * direction, 0)
        if lengths is None:
            h = new
            found.append(h)
        else:
            h = torch.where(inside[t], new, h)
            found.append(torch.where(inside[t], new, torch.zeros_like(new)))
    every = torch.stack(found[::-1] if reverse else found)
    return (every,) if r is None else (every, r)
