"""The gradients of all functions over a sequence, from its states."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from isometry import _core
from isometry._arrays import Array, gradient, ready, taken
from isometry._cells._declaration import START_STATE, Cell
from isometry._rules import check
from isometry._sequences import (
    Call,
    Form,
    Given,
    Options,
    in_order,
    of_kernel,
    parts_of,
    prepared,
    split_state,
    taken_of,
)
from isometry._states import checked
from isometry.gpu._calls import sent
from isometry.operators._operator import Operator


def gradients(
    cell: Cell,
    transition: Operator | None,
    arrays: dict[str, Any],
    options: Options,
    results: tuple[Any, Any, Any],
    check_states: bool,
    packed: Form | None = None,
    unpacked: Form | None = None,
) -> dict[str, Any]:
    """The gradients of all arguments by name.

    `results` are the states, their cotangent, and that of the memory; the first two have a part for each of the state.
    What a cell saves for backward is computed again.
    """
    given = taken_of(cell, arrays)
    states, ct, memory_ct = results
    parts: dict[str, Sequence[Array]] = {
        name: parts_of(cell, name, value) for name, value in (("states", states), ("ct", ct))
    }
    memory_ct = None if memory_ct is None else taken("ct", memory_ct)
    call, own_state = prepared(cell, transition, given, options, parts, packed, memory_ct)
    kept, cts = (of_kernel(np.concatenate(a, -1) if len(a) > 1 else a[0], call) for a in parts.values())
    if check.flag("check_states", check_states) and not call.resident:
        checked(kept, call)
    memory, saved = _again(call)
    if memory is not None:
        memory_ct = (
            np.zeros_like(memory) if memory_ct is None else ready(in_order(memory_ct, call.order, -3), call.dtype)
        )
    bars: Given = {
        name: None if a is None else call.room((call.members, *a.shape[1:]) if call.members else a.shape, a.dtype)
        for name, a in call.arrays.items()
    }
    route = call.route
    of_operator = () if route is None or call.inside else route.bars
    out, cts_of_results = (kept, memory, saved), (cts, memory_ct)
    _core.sequence_vjp(*call.given(), out, cts_of_results, tuple(bars.values()), of_operator, call.place, call.members)
    if call.inside and route is not None:
        both = bars[cell.matrices]
        bars[cell.matrices], route.bars[0][...] = both[..., :-1, :, :], both[..., -1, :, :]
    start_bar = bars.pop(START_STATE)
    bars |= {} if unpacked is None else unpacked(bars)
    split_state(cell, bars)
    found: dict[str, Any] = {} if route is None else {"transition": route.pull()}
    if call.resident:
        found = sent(found)
    back = None if call.order is None else np.argsort(call.order)
    axes = {} if back is None else {"x": -2, **{name: -1 - others for name, others in cell.each}}
    for name, own in given.items():
        bar = bars[name]
        if bar is None or own is None:
            found[name] = None
            continue
        bar = in_order(bar, back, axes[name]) if name in axes else bar
        bar = np.moveaxis(bar, 0, 1) if name == "x" and call.members is not None else bar
        found[name] = gradient(bar, own.shape, own.dtype)
    found[START_STATE] = None
    if start_bar is not None and own_state is not None:
        start_bar = np.moveaxis(start_bar, 0, 1) if start_bar.ndim == 4 else start_bar
        split = np.split(in_order(start_bar, back, -2), cell.width, -1)
        pulled = tuple(gradient(bar, own.shape, own.dtype) for bar, own in zip(split, own_state, strict=True))
        found[START_STATE] = pulled if cell.width > 1 else pulled[0]
    return found


def _again(call: Call) -> tuple[Array | None, Array | None]:
    """The memory, and what forward saves; on the GPU backward begins from the states."""
    memory, saved = call.memory(), call.saved()
    if memory is not None or saved is not None:
        call.run(call.states(), memory, saved)
    return memory, saved
