"""c <- f * c + i * g, h = o * tanh(c), with gates i, f, g and o; the definition is in `isometry._cells.lstm`."""

from typing import Any

import torch
from torch import Tensor

from .sequence import Carried, Law, Step, first


def formula(_law: Law, _weight: None, *arrays: Any) -> tuple[Tensor, Carried, Step]:
    """U x + b of all gates and steps, the first state (h, c), and a step."""
    x, w, u, b, h0, _ = arrays
    n = w.shape[-1]
    drive = x @ u.mT
    drive = drive if b is None else drive + b

    def step(drive: Tensor, carried: Carried) -> Carried:
        h, c = carried[0].split(n, -1)
        i, f, g, o = (h @ w.mT + drive).split(n, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return (torch.cat((torch.sigmoid(o) * torch.tanh(c), c), -1),)

    return drive, (first(h0, drive, 2 * n),), step
