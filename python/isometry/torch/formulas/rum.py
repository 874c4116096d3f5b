"""The rotational unit of memory; the definition is in `isometry._cells.rum`.

u (3n, d) and b (3n,) have the rows of u, tau and e.
"""

from typing import Any

import torch
from torch import Tensor

from .rotation import reflections, turned_rows, unit
from .sequence import Carried, Law, Step, first


def formula(law: Law, _weight: None, *arrays: Any) -> tuple[Tensor, Carried, Step]:
    """U x + b of all steps, the first state and memory, and a step."""
    x, w, u, b, h0, r0, activation_bias = arrays
    memory, eta = law.settings
    n, batch = w.shape[-1], x.shape[1]
    drive = x @ u.mT
    drive = drive if b is None else drive + b
    start: Carried = (first(h0, drive, n),)
    if memory:
        start += (torch.eye(n, dtype=x.dtype, device=x.device).expand(batch, n, n) if r0 is None else r0,)

    def step(drive: Tensor, carried: Carried) -> Carried:
        h, *kept = carried
        from_x, e = drive.split((2 * n, n), -1)
        keep, tau = (h @ w.mT + from_x).split(n, -1)
        keep = torch.sigmoid(keep)
        one, other = reflections(e, tau)
        if kept:
            kept = [turned_rows(kept[0], other, one)]
            turned = (kept[0] @ h.unsqueeze(-1)).squeeze(-1)
        else:
            turned = turned_rows(h.unsqueeze(-2), one, other).squeeze(-2)
        new = keep * h + (1 - keep) * law.phi(e + turned, activation_bias)
        if eta is not None:
            direction, live = unit(new)
            new = torch.where(live, eta * direction, 0)
        return new, *kept

    return drive, start, step
