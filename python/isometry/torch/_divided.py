"""Tensors that ``fully_shard`` has divided among processes."""

from typing import Any

from torch import Tensor


def is_divided(t: Tensor) -> bool:
    """Whether a tensor is a DTensor."""
    return hasattr(t, "device_mesh")


def gathered(t: Any) -> Tensor:
    """The whole tensor; all processes call it."""
    return t.full_tensor() if is_divided(t) else t


def divided(t: Tensor, like: Any) -> Tensor:
    """A whole tensor, divided as another is; all processes call it."""
    if not is_divided(like):
        return t
    from torch.distributed.tensor import distribute_tensor  # takes seconds to import

    return distribute_tensor(t, like.device_mesh, like.placements)


def of_part(whole: Tensor, like: Any) -> Tensor:
    """The part of a tensor, which every process has whole, that lies where the part of a divided one does; without
    communication.
    """
    from torch.distributed.tensor import DTensor, Replicate

    mesh = like.device_mesh
    known = DTensor.from_local(whole, mesh, [Replicate()] * mesh.ndim, run_check=False)
    part: Any = known.redistribute(placements=like.placements)
    return part.to_local()
