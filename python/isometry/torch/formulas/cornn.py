"""z <- z + dt (tanh(.) - gamma y - epsilon z), y <- y + dt z; the definition is in `isometry._cells.cornn`."""

from typing import Any

import torch
from torch import Tensor

from .sequence import Carried, Law, Step, first


def formula(law: Law, _weight: None, *arrays: Any) -> tuple[Tensor, Carried, Step]:
    """U x + b of all steps, the first state (y, z), and a step."""
    x, w, u, b, h0, _ = arrays
    dt, gamma, epsilon = law.settings
    n, both = w.shape[-1], torch.cat((w[0], w[1]), -1).mT
    drive = x @ u.mT
    drive = drive if b is None else drive + b

    def step(drive: Tensor, carried: Carried) -> Carried:
        y, z = carried[0].split(n, -1)
        z = z + dt * (torch.tanh(carried[0] @ both + drive) - gamma * y - epsilon * z)
        return (torch.cat((y + dt * z, z), -1),)

    return drive, (first(h0, drive, 2 * n),), step
