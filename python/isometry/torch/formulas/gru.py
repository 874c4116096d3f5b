"""h <- z * h + (1 - z) * c, with gates z and r; the definition is in `isometry._cells.gru`."""

from typing import Any

import torch
from torch import Tensor

from ..._cells.gru import R_FIRST
from .sequence import Carried, Law, Step, first


def formula(law: Law, weight: Tensor | None, *arrays: Any) -> tuple[Tensor, Carried, Step]:
    """U x + b of all gates and steps, the first state, and a step; W_h is the third of w unless it is given."""
    x, w, u, b, h0, hidden_bias, activation_bias = arrays
    (after,) = law.settings
    if after == R_FIRST:
        w, u, b, hidden_bias = (None if t is None else torch.stack((t[1], t[0], t[2])) for t in (w, u, b, hidden_bias))
    n = w.shape[-1]
    b, hidden_bias = apart(b, hidden_bias)
    drive = x @ u.flatten(0, 1).mT
    drive = drive if b is None else drive + b.flatten()
    gates, own = w[:2].flatten(0, 1).mT, (w[2] if weight is None else weight).mT

    def step(drive: Tensor, carried: Carried) -> Carried:
        (h,) = carried
        from_x, into_c = drive.split((2 * n, n), -1)
        z, r = torch.sigmoid(h @ gates + from_x).split(n, -1)
        if after:
            product = h @ own
            product = r * (product if hidden_bias is None else product + hidden_bias)
        else:
            product = (r * h) @ own
        c = law.phi(product + into_c, activation_bias)
        return (z * h + (1 - z) * c,)

    return drive, (first(h0, drive, n),), step


def apart(b: Tensor | None, hidden_bias: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """b (3, n), and the bias (n) of the product, where there are second biases (3, n): those of z and r add to b."""
    if hidden_bias is None or hidden_bias.dim() < 2:
        return b, hidden_bias
    if b is None:
        b = torch.zeros_like(hidden_bias)
    return torch.cat((b[:2] + hidden_bias[:2], b[2:])), hidden_bias[2]
