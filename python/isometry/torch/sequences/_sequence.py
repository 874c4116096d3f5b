"""Shared by all functions over a sequence: check the arguments, bring them to one dtype, sort the sequences, make one
call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..._cells._declaration import OWN_BIAS
from ..._rules import check, check_recurrence
from .._dispatch.function import COMPLEX_OF, dtype_name
from .._dispatch.mode import FORMULA, TRANSFORMED, WITHOUT_KERNELS, mode, symbolic, visible
from .._dispatch.plan import Tensors
from .._dispatch.results import computed
from ..operators._operator import Operator, integers, real_tensor, tensor
from ._cells import CELLS, Call
from ._ensemble import arranged, ensemble, last_of_members, marked
from ._plan import SEQUENCE
from ._states import last_of

Given = dict[str, Tensor | None]


def run(
    cell: str,
    transition: Operator | None,
    given: dict[str, Any],
    settings: tuple[float | None, ...],
    activation: str,
    slope: float,
    lengths: Tensor | Sequence[int] | None,
    reverse: bool,
    backend: str | None,
    packed: Callable[[Given], Given] | None = None,
    *,
    checkpoint: str = "none",
    output: str = "states",
    starts: Any = None,
) -> tuple[Tensor, Tensor | None]:
    """The states of a cell, or the last of each sequence, and the memory after them if it has one.

    `given` are the user's arrays by name, and "start_state", the state before the steps that `starts` marks; `packed`
    brings them into the order of the kernel.
    """
    declaration = CELLS[cell].declaration
    reverse = check.flag("reverse", reverse)
    check_recurrence.checkpoint(checkpoint, affine=declaration.operator, memory=declaration.memory(*settings))
    check.choice("output", output, *check_recurrence.OUTPUTS)
    if checkpoint == "reversible" and transition is not None:
        check_recurrence.reversible(activation, bool(settings[0]), transition._is_unitary)
    for name in declaration.required:
        if given[name] is None:
            check.kind(name, "a torch.Tensor", None)
    if declaration.real:
        tensors, dtype = _real(given), given["x"].dtype
    else:
        assert transition is not None
        tensors, dtype = _of_one_precision(transition, given)
    x, state = tensors["x"], tensors.pop("start_state", None)
    assert x is not None
    shapes = tuple([None if t is None else t.shape for t in tensors.values()])
    members = size = None
    if transition is not None:
        stack = transition.batch_shape
        if stack and declaration.operator:
            members, own_shapes = check_recurrence.ensemble(stack, dict(zip(tensors, shapes, strict=True)))
            shapes, stack = tuple(own_shapes.values()), ()  # type: ignore[arg-type]
        size = check_recurrence.recurrence_transition(transition.shape, stack)
    fits = declaration.check if symbolic() else declaration.known
    steps, batch, n = fits(shapes, size if declaration.operator else None)
    if transition is not None and not declaration.operator:
        kind = dtype_name(transition.dtype)
        check_recurrence.gated_transition(transition.shape, kind, n)
        check.same_precision("transition", kind, "x", dtype_name(dtype))
    check_recurrence.activation(activation, "activation")
    check_recurrence.slope(slope)
    check_recurrence.activation_units(
        activation,
        n,
        None if shapes[-1] is None else tuple(shapes[-1]),
        complex_=dtype.is_complex,
        argument=OWN_BIAS,
        features_of="the state" if declaration.real else "the transition",
    )
    marks, width = None, declaration.width * n
    if state is not None:
        check_recurrence.start_state_shape(tuple(state.shape), batch, width, members)
    if starts is not None:
        check_recurrence.starts_served(gpu=backend == "gpu")
        marks = _marks(starts, steps, batch, x.device, members)
        if state is not None:
            lead = () if members is None else state.shape[:-2] or (1,)
            state = state.expand(*lead, batch, width)
        # the states before a mark cannot be obtained from those after it
        checkpoint = "sqrt" if checkpoint == "reversible" else checkpoint
    else:
        state = None
    if members is not None:
        assert transition is not None
        check_recurrence.of_ensemble(checkpoint)
        stem, factors = _factors(transition, dtype, backend)
        call = Call(cell, stem, activation, float(slope), settings, reverse)
        ends, sorting = _order(lengths, steps, batch, x.device)
        values = arranged(tensors, batch, sorting)
        around = (*marked(state, marks, sorting), None if ends is None else ends[None])
        how = mode(*values, *around, *factors)
        if how in WITHOUT_KERNELS and stem != "dense":
            call, factors = call._replace(stem="dense"), _matrix(transition, dtype, backend)
        states = ensemble(how, backend, call, values, factors, around, members)
        states = states if sorting is None else states[:, :, sorting.argsort()]
        states = states.movedim(0, 1)
        if output == "last":
            ends, _ = _order(lengths, steps, batch, x.device, sort=False)
            states = last_of_members(states, ends, reverse, tensors["h0"])
        return states, None
    for name, axes in declaration.each:
        t = tensors[name]
        tensors[name] = None if t is None else t.expand(batch, *t.shape[-axes:])
    ends, order = _order(lengths, steps, batch, x.device)
    if order is not None:  # the kernels want the longest sequence first
        tensors["x"] = x[:, order]
        for name, _ in declaration.each:
            t = tensors[name]
            tensors[name] = None if t is None else t[order]
        marks, state = None if marks is None else marks[:, order], None if state is None else state[order]
    if packed is not None:
        tensors = packed(tensors)
    stem, factors = _factors(transition, dtype, backend)
    last, h0 = output == "last", tensors["h0"]
    call = Call(cell, stem, activation, float(slope), settings, reverse, checkpoint, last)
    values = tuple(tensors.values())
    how = mode(*values, ends, *factors, state, marks)
    if marks is not None and declaration.memory(*settings):
        how = FORMULA  # the kernels obtain a memory from the one after it, which a mark has made anew
    if how in WITHOUT_KERNELS and stem not in ("", "dense"):
        call, factors = call._replace(stem="dense"), _matrix(transition, dtype, backend)
    elif how is TRANSFORMED:  # where all states are kept
        call = call._replace(checkpoint="none", last=False)
    results = computed(SEQUENCE, how, backend, call, (*values, *factors, state, marks, ends))
    states, memory = results if len(results) > 1 else (results[0], None)
    if last and not call.last:
        states = last_of(states, ends, reverse, h0)
    if order is None:
        return states, memory
    back = order.argsort()  # the user's order of the sequences
    return states[back] if last else states[:, back], None if memory is None else memory[back]


def _marks(starts: Any, steps: int, batch: int, device: torch.device, members: int | None) -> Tensor:
    """The marks as integers, as the kernels take them."""
    try:
        marks = torch.as_tensor(starts, device=device)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        check.unreadable("starts", error)
    check_recurrence.starts(dtype_name(marks.dtype), tuple(marks.shape), steps, batch, members)
    return marks.long()


def _factors(transition: Operator | None, dtype: torch.dtype, backend: str | None) -> tuple[str, Tensors]:
    """The object whose kernels step the recurrence, and its arguments."""
    if transition is None:
        return "", ()
    return transition._factors(dtype) or ("dense", _matrix(transition, dtype, backend))


def _matrix(transition: Operator | None, dtype: torch.dtype, backend: str | None) -> tuple[Tensor]:
    assert transition is not None
    return (transition.matrix(backend=backend).to(dtype),)


def _real(given: dict[str, Any]) -> Given:
    """The arrays as real tensors of the precision of x."""
    x = tensor("x", given["x"])
    check.real("x", dtype_name(x.dtype))
    made: Given = {"x": x}
    for name, value in given.items():
        if name != "x":
            if value is not None and not isinstance(value, Tensor):
                check.kind(name, "a torch.Tensor", value)
            made[name] = None if value is None else real_tensor(name, value, "x", x.dtype, x.device)
    return made


def _of_one_precision(transition: Operator, given: dict[str, Any]) -> tuple[Given, torch.dtype]:
    """The arrays in the dtype of the states, complex where one of them or W is; the activation's bias is real."""
    made: Given = {name: None if t is None or name == OWN_BIAS else tensor(name, t) for name, t in given.items()}
    dtype, mixed = transition.dtype, False
    for name, t in made.items():
        if t is not None and t.dtype is not dtype:
            check.same_precision(name, dtype_name(t.dtype), "the transition", dtype_name(dtype))
            dtype, mixed = COMPLEX_OF[dtype], True
    if mixed or dtype is not transition.dtype:
        made = {name: None if t is None else t.to(dtype) for name, t in made.items()}
    own = given[OWN_BIAS]
    if own is not None:
        made[OWN_BIAS] = real_tensor(OWN_BIAS, own, "the transition", dtype, given["x"].device)
    return made, dtype


def _order(
    lengths: Tensor | Sequence[int] | None, steps: int, batch: int, device: torch.device, sort: bool = True
) -> tuple[Tensor | None, Tensor | None]:
    """The lengths, longest first, and the sorting order of the batch if it is not sorted already."""
    if lengths is None:
        return None, None
    ends = integers("lengths", lengths)
    check_recurrence.lengths_shape(tuple(ends.shape), batch)
    seen = visible(ends)
    if seen:
        check_recurrence.lengths_range(int(ends.min()), int(ends.max()), steps)
    falling = seen and bool((ends[1:] <= ends[:-1]).all())
    # A separate copy, because the backward pass reads it again.
    ends = ends.to(device, copy=True)
    if falling or not sort:
        return ends, None
    order = ends.argsort(descending=True, stable=True)
    return ends[order], order
