"""A recurrence over a stack of operators: an ensemble of recurrences of the same sizes, in one call of the kernels."""

from __future__ import annotations

import torch
from torch import Tensor

from .._dispatch.function import place
from .._dispatch.mode import GRAPH, KERNEL, WITHOUT_KERNELS, Mode
from .._dispatch.plan import Tensors, member
from .._dispatch.results import computed
from .._dispatch.transforms import transformed
from ._cells import Call
from ._plan import SEQUENCE
from ._states import last_of

#: The axes of one member's array.
_RANKS = {"input_weight": 2, "h0": 2, "bias": 1, "activation_bias": 1}


def arranged(arrays: dict[str, Tensor | None], batch: int, sorting: Tensor | None) -> tuple[Tensor | None, ...]:
    """The arrays, whose shapes were checked, with the members as first axis and the sequences in this order."""
    x = arrays["x"]
    assert x is not None
    x = x.movedim(1, 0)
    tensors: dict[str, Tensor | None] = {"x": x if sorting is None else x[:, :, sorting]}
    for name, rank in _RANKS.items():
        t = arrays[name]
        if t is not None and t.dim() <= rank:
            t = t[None]
        if t is not None and name == "h0":
            t = t.reshape(t.shape[0], -1, t.shape[-1]).expand(-1, batch, -1)
            t = t if sorting is None else t[:, sorting]
        tensors[name] = t
    return tuple([None if t is None else t.contiguous() for t in tensors.values()])


def marked(state: Tensor | None, marks: Tensor | None, sorting: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The state before marked steps and the marks, with the members as first axis and the sequences in this order."""
    if marks is None:
        return None, None
    marks = marks.movedim(1, 0) if marks.dim() == 3 else marks[None]
    if sorting is not None:
        marks, state = marks[:, :, sorting], None if state is None else state[:, sorting]
    return None if state is None else state.contiguous(), marks.contiguous()


def ensemble(
    how: Mode, backend: str | None, call: Call, tensors: Tensors, factors: Tensors, around: Tensors, members: int
) -> Tensor:
    """The states (E, T, B, n) of all members; graphs and formulas compute them one by one.

    `around` are the state before marked steps, the marks, the lengths.
    """
    every = *tensors, *factors, *around
    if how in WITHOUT_KERNELS or how is GRAPH:
        each = [computed(SEQUENCE, how, backend, call, member(every, i))[0] for i in range(members)]
        return torch.stack(each)
    if how is KERNEL:
        return SEQUENCE.run_stack(call, members, every, place(backend))[0][0]
    return transformed(SEQUENCE, call, place(backend), every, members)[0]


def last_of_members(states: Tensor, lengths: Tensor | None, reverse: bool, h0: Tensor | None) -> Tensor:
    """The last of all states (T, E, B, n), (E, B, n)."""
    members = states.shape[1]
    own = [None if h0 is None else h0[i if h0.shape[0] > 1 else 0] if h0.dim() == 3 else h0 for i in range(members)]
    return torch.stack([last_of(states[:, i], lengths, reverse, h) for i, h in enumerate(own)])
