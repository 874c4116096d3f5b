"""What a call over a sequence returns and keeps of its states: all, the last of each sequence, or those at the borders
of segments, from which a backward pass obtains the others again."""

from typing import Any

import torch
from torch import Tensor

from ... import _core
from .._dispatch.function import Array, empty
from ._cells import CELLS, Call

#: The states as a kernel takes them: all, or (all, last, borders, checkpoint) of which some are None.
States = Array | tuple[Array | None, Array | None, Array | None, str | None]


def borders(call: Call, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """Shape of what a checkpoint keeps: the states at the borders of segments, then the last of each sequence."""
    steps, batch, n = shape
    cell = CELLS[call.cell].declaration
    return _core.recurrence_marks(call.checkpoint, steps, batch, cell.saved(*call.settings), cell.width) + 1, batch, n


def written(
    call: Call, shape: tuple[int, int, int], dtype: torch.dtype, saving: bool
) -> tuple[Tensor, Tensor | None, States]:
    """The result, what backward needs of the states, and both as a kernel writes them."""
    marked = saving and call.checkpoint != "none"
    states, whole = (None, None) if call.last and (marked or not saving) else empty(shape, dtype)
    last, end = empty(shape[1:], dtype) if call.last and not marked else (None, None)
    if not marked:
        result = states if last is None else last
        return result, states if saving else None, whole if last is None else (whole, end, None, None)  # type: ignore[return-value]
    kept, rows = empty(borders(call, shape), dtype)
    return kept[-1] if states is None else states, kept, (whole, rows[-1], rows[:-1], call.checkpoint)


def read(call: Call, kept: Array) -> States:
    """What was kept, as a kernel reads it."""
    return kept if call.checkpoint == "none" else (None, kept[-1], kept[:-1], call.checkpoint)


def _ends(states: Tensor, lengths: Tensor | None, reverse: bool) -> tuple[Any, Any]:
    """The last step of each sequence, and its number, of states (..., T, B, n)."""
    steps, rows = states.shape[-3], torch.arange(states.shape[-2], device=states.device)
    if reverse:
        return torch.zeros_like(rows), rows
    return (torch.full_like(rows, steps - 1) if lengths is None else (lengths - 1).clamp(min=0)), rows


def last_of(states: Tensor, lengths: Tensor | None, reverse: bool, h0: Tensor | None) -> Tensor:
    """The last of all states (..., T, B, n)."""
    last = states[(..., *_ends(states, lengths, reverse), slice(None))]
    if lengths is None:
        return last
    return torch.where((lengths > 0)[:, None], last, torch.zeros_like(last) if h0 is None else h0)


def spread(ct: Tensor, states: Tensor, lengths: Tensor | None, reverse: bool) -> Tensor:
    """The cotangents of all states from those of the last ones; a sequence without a step has none."""
    found = torch.zeros_like(states)
    found[_ends(states, lengths, reverse)] = ct if lengths is None else ct * (lengths > 0)[:, None]
    return found
