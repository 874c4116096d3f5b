"""z <- (1 - dt s_1) * z + dt s_1 * tanh(.), then y from z; the definition is in `isometry._cells.lem`."""

from typing import Any

import torch
from torch import Tensor

from .sequence import Carried, Law, Step, first


def formula(law: Law, _weight: None, *arrays: Any) -> tuple[Tensor, Carried, Step]:
    """U x + b of all gates and steps, the first state (y, z), and a step."""
    x, w, u, b, h0, _ = arrays
    (dt,) = law.settings
    n, of_state = w.shape[-1], w.flatten(0, 1).mT
    drive = x @ u.flatten(0, 1).mT
    drive = drive if b is None else drive + b.flatten()

    def step(drive: Tensor, carried: Carried) -> Carried:
        of_y, of_z = of_state.split((3 * n, n), -1)  # here, since a scan takes no two tensors of one memory
        y, z = carried[0].split(n, -1)
        gates, own = drive.split((3 * n, n), -1)
        s_1, s_2, t = (y @ of_y + gates).split(n, -1)
        z = torch.lerp(z, torch.tanh(t), dt * torch.sigmoid(s_1))
        y = torch.lerp(y, torch.tanh(z @ of_z + own), dt * torch.sigmoid(s_2))
        return (torch.cat((y, z), -1),)

    return drive, (first(h0, drive, 2 * n),), step
