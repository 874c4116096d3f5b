"""h_t = phi(W h_{t-1} + V x_t + b), one step at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from ._precision import full_precision
from .activation import activate


@full_precision
def states(
    weight: Tensor,
    x: Tensor,
    input_weight: Tensor,
    h0: Tensor | None,
    bias: Tensor | None,
    activation: str,
    activation_bias: Tensor | None,
    slope: float,
    on_input: bool,
    lengths: Tensor | None,
    reverse: bool,
) -> Tensor:
    """States (T, B, n) of h <- phi(W h + V x_t + b), or W h + phi(V x_t + b), one step at a time."""
    steps, batch = x.shape[:2]
    if lengths is not None:
        inside = torch.arange(steps, device=x.device)[:, None, None] < lengths[:, None]
        # What lies behind a sequence's end must not reach a gradient, not even as 0 * NaN.
        x = torch.where(inside, x, torch.zeros_like(x))
    drive = x @ input_weight.mT
    drive = drive if bias is None else drive + bias
    drives = (activate(drive, activation, activation_bias, slope) if on_input else drive).unbind(0)
    h = drive.new_zeros((batch, weight.shape[0])) if h0 is None else h0
    states: list[Tensor] = []
    for t in reversed(range(steps)) if reverse else range(steps):
        new = h @ weight.mT + drives[t]
        new = new if on_input else activate(new, activation, activation_bias, slope)
        if lengths is None:
            h = new
            states.append(h)
        else:
            h = torch.where(inside[t], new, h)
            states.append(torch.where(inside[t], new, torch.zeros_like(new)))
    return torch.stack(states[::-1] if reverse else states)
