"""The states of a cell: one operation of autograd, or of a compiled graph."""

import torch
from torch import Tensor
from torch.compiler import is_compiling

from .._dispatch.device import computed_there
from ..formulas._precision import full_precision
from ..formulas.sequence import Law
from .activation import served
from .graph import in_graph
from .loop import CELLS, Loop


def serves(cell: str, law: Law, n: int) -> bool:
    """Whether this cell has steps here for states of n numbers, with derivatives that follow from what is saved."""
    if cell == "rum" and (law.settings[0] or n < 3):  # a memory of rotations; rotations of a plane
        return False
    return cell in CELLS and served(cell, law.activation, law.slope)


@full_precision
def states(
    cell: str,
    law: Law,
    lengths: Tensor | None,
    reverse: bool,
    weight: Tensor | None,
    x: Tensor,
    *tensors: Tensor | None,
) -> tuple[Tensor, ...]:
    """The states (T, B, n), or the last of each sequence (B, n)."""
    inside = None
    if lengths is not None:
        inside = (torch.arange(x.shape[0], device=x.device)[:, None] < lengths.to(x.device))[..., None]
        x = torch.where(inside, x, torch.zeros_like(x))
    call, given = Loop(cell, law, inside, reverse), (weight, x, *tensors)
    return (in_graph(call, given),) if is_compiling() else computed_there(call, given)
