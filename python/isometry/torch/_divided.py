"""Tensors that ``fully_shard`` has divided among processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def is_divided(t: Tensor) -> bool:
    """Whether a tensor is a DTensor."""
    return hasattr(t, "device_mesh")


def gathered(t: Any) -> Tensor:
    """The whole tensor; all processes call it."""
    whole: Tensor = t.full_tensor() if is_divided(t) else t
    return whole


def divided(t: Tensor, like: Any) -> Tensor:
    """A whole tensor, divided as another is; all processes call it."""
    if not is_divided(like):
        return t
    from torch.distributed.tensor import distribute_tensor  # takes seconds to import

    return distribute_tensor(t, like.device_mesh, like.placements)


def changed(t: Any, change: Callable[[Tensor, Tensor], Tensor], beside: Tensor) -> Tensor:
    """A divided tensor whose parts are changed, each with the same part of a whole one; without communication."""
    from torch.distributed.tensor import DTensor, Replicate

    mesh = t.device_mesh
    known = DTensor.from_local(beside, mesh, [Replicate()] * mesh.ndim, run_check=False)
    part: Any = known.redistribute(placements=t.placements)
    with torch.no_grad():
        found = t.clone()
        own = found.to_local()
        own.copy_(change(own, part.to_local()))
    return found
