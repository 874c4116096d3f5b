"""A recurrence whose matrices are block-diagonal: an ensemble of recurrences, each over its own piece of the state.

The arrays of all units are divided among the blocks, the states put side by side. The n units of an axis `3n` are
those of each of its three parts.
"""

from typing import Any

from torch import Tensor

from ..._cells._declaration import Cell
from ..operators._block_diagonal import diagonal

Given = dict[str, Any]  # tensors, None for one that is not given


def whole_shape(shape: Any, factors: Any, heads: int) -> Any:
    """The shape of a matrix of which the blocks (heads, ...) are given."""
    return tuple([size * heads if of == "n" else size for size, (_, of) in zip(shape[1:], factors, strict=True)])


def whole(declaration: Cell, tensors: Given) -> Given:
    """The arrays with the blocks of their matrices in whole ones."""
    made = dict(tensors)
    for array in declaration.arrays:
        t = tensors.get(array.name)
        if t is not None and array.squares:
            (times, _), *_ = array.factors
            parts = t.unflatten(1, (times, -1)) if len(array.factors) == 2 else t
            found = diagonal(parts.movedim(0, -3))
            made[array.name] = found.flatten(0, 1) if len(array.factors) == 2 else found
    return made


def divided(
    declaration: Cell, tensors: Given, count: int, marks: Tensor | None, state: Tensor | None
) -> tuple[Given, Tensor | None, Tensor | None]:
    """The arrays, whose shapes were checked, with the blocks as members of an ensemble, their first axis."""
    made: Given = {}
    for array in declaration.arrays:
        t = tensors[array.name]
        if t is not None and not array.squares:
            axis, times = array.units
            t = pieces(t, axis, times, count) if axis else t.unsqueeze(0)
        made[array.name] = t
    marks = None if marks is None else marks[None]
    return made, marks, None if state is None else pieces(state, -1, declaration.width, count)


def joined(states: Tensor, width: int) -> Tensor:
    """The states (blocks, ..., width k) of all blocks side by side."""
    parts = states.unflatten(-1, (width, -1)).movedim(0, -2)
    return parts.flatten(-3)


def pieces(t: Tensor, axis: int, times: int, count: int) -> Tensor:
    """An array with `times` numbers of each unit along the axis, counted from the last, divided among the blocks."""
    parts = t.unflatten(axis, (times, count, -1))
    pieces = parts.movedim(axis - 1, 0)
    return pieces.flatten(axis - 1, axis)
