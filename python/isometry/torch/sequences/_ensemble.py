"""An ensemble: recurrences of the same sizes, with arrays or an operator of their own, in one call of the kernels."""

from functools import partial

import torch
from torch import Tensor

from ..._cells._declaration import Cell
from .._dispatch.function import place
from .._dispatch.mode import DEVICE, GRAPH, KERNEL, WITHOUT_KERNELS, Mode
from .._dispatch.plan import Results, Tensors, member
from .._dispatch.results import computed
from .._dispatch.transforms import transformed
from ._cells import Call
from ._plan import BESIDE, SEQUENCE


def arranged(
    cell: Cell, arrays: dict[str, Tensor | None], batch: int, marks: Tensor | None, state: Tensor | None
) -> tuple[dict[str, Tensor | None], Tensor | None, Tensor | None]:
    """The arrays, whose shapes were checked, the marks, and the state before them, with the members as first axis."""
    made, each = {}, dict(cell.each)
    for array in cell.arrays:
        name, t = array.name, arrays[array.name]
        if t is not None and name == "x":
            t = t.movedim(1, 0)
        elif t is not None and name in each:
            core, lead = t.shape[-each[name] :], t.shape[0] if t.dim() > array.rank else 1
            t = t.reshape(lead, -1, *core).expand(-1, batch, *core)
        elif t is not None and t.dim() <= array.rank:
            t = t.unsqueeze(0)
        made[name] = t
    if marks is not None:
        marks = marks.movedim(1, 0) if marks.dim() == 3 else marks[None]
    if state is not None and state.dim() == 4:
        state = state.movedim(1, 0)
    return made, marks, state


def ensemble(how: Mode, backend: str | None, call: Call, tensors: Tensors, members: int, *, blocks: bool) -> Results:
    """The states (E, T, B, n) of all members, and their memories; graphs, modes that observe torch's operations and a
    checkpoint compute them one by one. On another device, where each operation is a launch, they share all operations.

    With `blocks` the states lie beside one another in memory.
    """
    every = tuple([None if t is None else t.contiguous() for t in tensors])
    axes = [None if t is None or t.shape[0] == 1 else 0 for t in every]
    if how is DEVICE and 0 in axes:
        given = [t if t is None or axis == 0 else t[0] for t, axis in zip(every, axes, strict=True)]
        return torch.func.vmap(partial(SEQUENCE.formula, call), tuple(axes))(*given)
    if how in WITHOUT_KERNELS or how is GRAPH or call.checkpoint != "none":
        each = [computed(SEQUENCE, how, backend, call, member(every, i)) for i in range(members)]
        return tuple([torch.stack(parts) for parts in zip(*each, strict=True)])
    plan = BESIDE if blocks else SEQUENCE
    if how is KERNEL:
        return plan.run_stack(call, members, every, place(backend))[0]
    return transformed(plan, call, place(backend), every, members)
