"""Padded sequences of different lengths, and dropout between layers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def packed_rows(sizes: Tensor) -> tuple[Tensor, Tensor]:
    """For batch sizes (T,): the row t B + b of every packed entry in the padded (T B,) array, and lengths (B,)."""
    inside = torch.arange(int(sizes[0]), device=sizes.device) < sizes[:, None]
    return inside.flatten().nonzero().squeeze(1), inside.sum(0)


def last_state(states: Tensor, lengths: Tensor | None, reverse: bool) -> Tensor:
    """The state (B, n) that each recurrence computed last."""
    if reverse:
        return states[0]
    if lengths is None:
        return states[-1]
    batch = torch.arange(states.size(1), device=states.device)
    return states[lengths.to(states.device) - 1, batch]


def dropped(x: Tensor, p: float) -> Tensor:
    """Dropout of whole units: the two parts of a complex number are dropped together."""
    return x * F.dropout(torch.ones_like(x.real), p) if x.is_complex() else F.dropout(x, p)
