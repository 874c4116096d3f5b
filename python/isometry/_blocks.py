"""A recurrence over a `BlockDiagonal`: an ensemble of recurrences, each over its own piece of the state."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from isometry._arrays import Array, gradient
from isometry._cells._declaration import START_STATE, Cell
from isometry._gradients import gradients
from isometry._rules import check_recurrence
from isometry._sequences import Given, Options, checked, parts_of, states_of, taken_of
from isometry.gpu._calls import resident
from isometry.operators._block_diagonal import BlockDiagonal
from isometry.operators._operator import Operator


def states(cell: Cell, transition: Operator, arrays: dict[str, Any], options: Options, output: str) -> Array:
    """The states (T, B, n), or the last of each sequence."""
    blocks = _blocks(transition, arrays, options)
    if blocks is None:
        return states_of(cell, transition, arrays, options, output)[0]
    given = taken_of(cell, arrays)
    checked(cell, transition, given, options, {})
    divided, around = _divided(cell, given, options, blocks)
    return _joined(states_of(cell, blocks.operator, divided, around, output)[0])


def pulled(
    cell: Cell, transition: Operator, arrays: dict[str, Any], options: Options, results: Any, check_states: bool
) -> dict[str, Any]:
    """The gradients of all arguments by name, from the states and their cotangent."""
    blocks = _blocks(transition, arrays, options, *results)
    if blocks is None:
        return gradients(cell, transition, arrays, options, results, check_states)
    given = taken_of(cell, arrays)
    kept, ct, _ = results
    parts: dict[str, Sequence[Array]] = {
        name: parts_of(cell, name, value) for name, value in (("states", kept), ("ct", ct))
    }
    checked(cell, transition, given, options, parts)
    divided, around = _divided(cell, given, options, blocks)
    count = blocks.operator.batch_shape[-1]
    kept, ct = (np.moveaxis(_pieces(a, -1, count), 0, 1) for (a,) in parts.values())
    found = gradients(cell, blocks.operator, divided, around, (kept, ct, None), check_states)
    for array in cell.arrays:
        own, (axis, _) = given[array.name], array.units
        if own is not None and axis:
            found[array.name] = _whole(found[array.name], axis).reshape(own.shape)
    if options.start_state is not None:
        (own,) = parts_of(cell, START_STATE, options.start_state)
        bar = _joined(found[START_STATE])
        found[START_STATE] = gradient(bar, own.shape, own.dtype)
    found["x"] = found["x"][:, 0]
    return found


def _blocks(transition: Operator, arrays: dict[str, Any], options: Options, *results: Any) -> BlockDiagonal | None:
    """The transition, if the recurrence falls into those of its blocks."""
    if not isinstance(transition, BlockDiagonal) or transition.batch_shape or not isinstance(options.activation, str):
        return None
    held = *arrays.values(), *results, *transition._members()
    within = check_recurrence.within_blocks(options.activation, transition.operator.shape[0])
    return transition if within and not resident(*held) else None


def _divided(cell: Cell, given: Given, options: Options, blocks: BlockDiagonal) -> tuple[dict[str, Any], Options]:
    """The arrays with the blocks as the members of an ensemble."""
    count, each = blocks.operator.batch_shape[-1], dict(cell.each)
    made: dict[str, Any] = {}
    for array in cell.arrays:
        a, (axis, _) = given[array.name], array.units
        if a is not None:
            a = _pieces(a, axis, count) if axis else a[:, None]
            # one state for all sequences: the axis before its units is that of the blocks
            a = a[:, None] if array.name in each and a.ndim < array.rank + 1 else a
        made[array.name] = a
    state = options.start_state
    if state is not None:
        (own,) = parts_of(cell, START_STATE, state)
        own = _pieces(own, -1, count)
        own = np.moveaxis(own, 0, 1) if own.ndim == 4 else own[:, None] if own.ndim == 2 else own
        options = options._replace(start_state=own)
    return made, options


def _pieces(a: Array, axis: int, count: int) -> Array:
    """An array divided along the axis of the units, counted from the last, with the blocks as first axis."""
    at = a.ndim + axis
    parts = a.reshape(*a.shape[:at], count, a.shape[at] // count, *a.shape[at + 1 :])
    return np.moveaxis(parts, at, 0)


def _whole(pieces: Array, axis: int) -> Array:
    """The inverse of `_pieces`."""
    at = pieces.ndim + axis - 1
    parts = np.moveaxis(pieces, 0, at)
    return parts.reshape(*parts.shape[:at], parts.shape[at] * parts.shape[at + 1], *parts.shape[at + 2 :])


def _joined(states: Array) -> Array:
    """States (..., blocks, B, k) of all blocks side by side, (..., B, n)."""
    parts = np.moveaxis(states, -3, -2)
    return parts.reshape(*parts.shape[:-2], -1)
