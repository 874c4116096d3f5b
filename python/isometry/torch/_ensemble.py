"""A recurrence over a stack of operators: an ensemble of recurrences of the same sizes, in one call of the kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ._cells import Call
from ._lean import last_of
from ._mode import FORMULA, GRAPH, KERNEL, within
from ._sequence_plan import SequencePlan
from ._transforms import computed
from .operators._operator import Operator

#: The axes of one member's array.
_RANKS = {"input_weight": 2, "h0": 2, "bias": 1, "activation_bias": 1}


def ensemble(
    call: Call,
    transition: Operator,
    arrays: dict[str, Tensor | None],
    sizes: tuple[int, torch.dtype, int, int],
    order: tuple[Tensor | None, Tensor | None],
    one: Callable[..., tuple[Tensor, Tensor | None]],
) -> Tensor:
    """The states (T, E, B, n), from arrays whose shapes were checked; graphs and formulas compute them one by one."""
    (members, dtype, steps, batch), (ends, sorting) = sizes, order
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
    found = tuple([None if t is None else t.contiguous() for t in tensors.values()])
    stem, own = transition._steps(dtype, steps, batch, False, call.backend) or ("dense", ())
    how = within(*found, ends, *own)
    by_member = how is FORMULA or how is GRAPH
    if stem == "dense" or by_member:
        stem, own = "dense", (transition.matrix(backend=call.backend).to(dtype),)
        how = how if by_member else within(*found, ends, *own)
    call = call._replace(stem=stem)
    if by_member:
        of = lambda t, i: None if t is None else t[i if t.shape[0] > 1 else 0]
        each = [one(how, call, [of(t, i) for t in found], (own[0][i],), ends)[0] for i in range(members)]  # type: ignore[index]
        states = torch.stack(each)
    else:
        plan = SequencePlan(call, tuple(tensors), len(own), members)
        given = *found, *own, None if ends is None else ends[None]
        (states,) = plan.run(given)[:1] if how is KERNEL else computed(plan, *given)
    if sorting is not None:
        states = states[:, :, sorting.argsort()]
    return states.movedim(0, 1)


def last_of_members(states: Tensor, lengths: Tensor | None, reverse: bool, h0: Tensor | None) -> Tensor:
    """The last of all states (T, E, B, n), (E, B, n)."""
    members = states.shape[1]
    own = [None if h0 is None else h0[i if h0.shape[0] > 1 else 0] if h0.dim() == 3 else h0 for i in range(members)]
    return torch.stack([last_of(states[:, i], lengths, reverse, h) for i, h in enumerate(own)])
