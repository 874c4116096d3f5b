"""The kernel call of a cell over a sequence, alone and in an ensemble: many in one call.

Tensors are those of the cell in the order of its declaration, the arguments of the transition, the state at marks, the
marks, and the lengths, which do not increase. The choice between W and its factors is made when the kernel runs, so one
graph serves any number of steps and sequences. Saved for backward are the states, where they are no result, what the
cell declares, and W if it was formed; or with a checkpoint, some states (`_states`). A compiled graph with a checkpoint
saves none: its backward computes them first.
"""

from collections.abc import Sequence
from math import isnan, nan
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ... import _core
from ..._backend import Place
from .. import on_device
from .._dispatch.function import arrays, empty, empty_gradients, place, readable, trained_only
from .._dispatch.graph import custom_operators
from .._dispatch.plan import Flags, Out, Plan, Results, Rows, Saved, Tensors, full, member
from ..formulas.sequence import states as by_formula
from ..operators._plans import BY_STEM
from . import _states
from ._cells import CELLS, NAMES, Call, Read, backward, forward, law

#: The tensors of the cell, the arguments of the transition, and the rest: the state at marks, the marks, the lengths.
Parts: TypeAlias = tuple[Tensors, Tensors, Tensors]
_REST = 3


def _parts(call: Call, tensors: Tensors) -> Parts:
    count = len(NAMES[call.cell])
    return tensors[:count], tensors[count:-_REST], tensors[-_REST:]


def shapes_of(call: Call, tensors: Tensors) -> tuple[Any, Any, Any]:
    """Shapes of the states, the memory after them, and what forward saves; (0,) where absent."""
    (steps, batch, _), declaration = tensors[0].shape, CELLS[call.cell].declaration
    size = declaration.size((tensors[0].shape, tensors[1].shape))
    return declaration.results(tuple(call.settings), steps, batch, size)


def _read(parts: Parts) -> Read:
    """What a kernel reads."""
    tensors, factors, (state, starts, lengths) = parts
    marks = None if starts is None else (readable(starts), None if state is None else readable(state))
    return arrays(factors), arrays(tensors), None if lengths is None else readable(lengths.reshape(-1)), marks


def through_matrix(call: Call, tensors: Tensors, factors: Tensors, at: Place) -> bool:
    """Whether W is formed, because that is cheaper than its factors, or the GPU takes no others."""
    gated = not CELLS[call.cell].declaration.operator
    if not _forms(call.stem) or at == "gpu":
        return _forms(call.stem) and gated
    shape = tensors[0].shape
    return _core.recurrence_route(call.stem, arrays(factors), shape[0], shape[1], gated) == "dense"


def _forms(stem: str) -> bool:
    """Whether W may have to be formed."""
    return stem not in ("", "dense")


class Recurrence(Plan):
    """The states of a call, or the last ones, and the memory after them if the cell has one."""

    place = staticmethod(place)
    operators = custom_operators(
        "sequence",
        "str cell, str stem, str activation, float slope, float[] settings, bool reverse, str checkpoint, bool last",
        lambda *settings: (SEQUENCE, decoded(*settings)),
    )

    def count(self, settings: Call) -> int:
        return 1 + CELLS[settings.cell].declaration.memory(*settings.settings)

    def kept(self, settings: Call, results: Tensors) -> Tensors:
        return results if _whole(settings) else (None, *results[1:])

    def trained(self, settings: Call, recorded: Flags) -> Flags:
        if not settings.stem:
            return recorded
        count = len(NAMES[settings.cell])
        learned = BY_STEM[settings.stem].matrix.learned
        return (*recorded[:count], *trained_only(recorded[count:-_REST], learned), recorded[-_REST], False, False)

    def run(self, settings: Call, tensors: Tensors, saving: bool, at: Place) -> tuple[Results, Saved]:
        call, (of_cell, factors, around) = settings, _parts(settings, tensors)
        weight, of_weight = None, ()
        if call.stem and through_matrix(call, of_cell, factors, at):
            n = shapes_of(call, of_cell)[0][2]
            (weight,), of_weight = BY_STEM[call.stem].matrix.run((n, n), factors, saving, at)
            weight = weight.to(of_cell[0].dtype)  # W may be real among complex arrays
            call, factors = call._replace(stem="dense"), (weight,)
        result, memory, saved, states = _forward(call, (of_cell, factors, around), saving, at)
        results = (result,) if memory is None else (result, memory)
        return results, (None if _whole(call) else states, saved, weight, *of_weight) if saving else ()

    def pull(
        self, settings: Call, tensors: Tensors, out: Out, wanted: Flags, at: Place, stack: int | None = None
    ) -> Tensors:
        call, (of_cell, factors, around) = settings, _parts(settings, tensors)
        count = len(of_cell)
        results, saved, cts = out
        if not saved:
            results, saved = self.run(call, tensors, True, at)
        states, of_cell_saved, weight, *of_weight = saved
        read = results[0] if states is None else states, results[1] if len(results) > 1 else None, of_cell_saved
        if stack is not None:
            factors = full(factors, stack)
            read, cts = (self.held(read[0], at), *read[1:]), (self.held(cts[0], at), *cts[1:])
        # A graph has an array for W, formed or not.
        if weight is None or (stack is None and not through_matrix(call, of_cell, factors, at)):
            return [*_backward(call, (of_cell, factors, around), (read, cts), wanted[:-2], at, stack), None, None]
        asked = (*wanted[:count], any(wanted[count:-_REST]), wanted[-_REST])
        dense = call._replace(stem="dense")
        *grads, w_bar, start_bar = _backward(dense, (of_cell, (weight,), around), (read, cts), asked, at, stack)
        if w_bar is None:
            return [*grads, *(None,) * len(factors), start_bar, None, None]
        matrix = BY_STEM[call.stem].matrix
        dtype = matrix.dtype(factors)  # of W, which may be real among complex arrays
        weight, w_bar = (w if w.dtype is dtype else w.real for w in (weight, w_bar))
        kept = matrix.kept((), (weight,))
        more = matrix.pull((), factors, (kept, tuple(of_weight), (w_bar,)), wanted[count:-_REST], at)
        return [*grads, *more, start_bar, None, None]

    def formula(self, settings: Call, *tensors: Tensor | None) -> Results:
        of_cell, factors, around = _parts(settings, tensors)
        weight = BY_STEM[settings.stem].matrix.of_arguments(*factors).to(of_cell[0].dtype) if settings.stem else None
        cell = CELLS[settings.cell].formula
        state, starts, lengths = around
        marks = None if starts is None else (starts, state)
        found = by_formula(cell, law(settings), lengths, settings.reverse, weight, *of_cell, marks=marks)
        return found[: self.count(settings)]

    def on_device(self, settings: Call, *tensors: Tensor | None) -> Results:
        of_cell, factors, around = _parts(settings, tensors)
        _, starts, lengths = around
        n = shapes_of(settings, of_cell)[0][-1]
        if starts is not None or not on_device.serves(settings.cell, law(settings), n):
            return self.formula(settings, *tensors)
        weight = factors[0] if factors else None  # W has been formed
        return on_device.states(settings.cell, law(settings), lengths, settings.reverse, weight, *of_cell)

    def shapes(self, settings: Call, tensors: Tensors, saving: bool) -> Sequence[Any]:
        states, memory, saved = shapes_of(settings, tensors)
        results = states[1:] if settings.last else states, memory
        if not saving or settings.checkpoint != "none":
            return results[: self.count(settings)]
        weight = (states[2], states[2]) if _forms(settings.stem) else (0,)
        return *results[: self.count(settings)], states if settings.last else (0,), saved, weight

    def encoded(self, settings: Call) -> Any:
        # torch 2.8 traces neither `_replace` nor a slice of a named tuple
        s, numbers = settings, [nan if n is None else float(n) for n in settings.settings]
        return s.cell, s.stem, s.activation, s.slope, numbers, s.reverse, s.checkpoint, s.last

    # ---------------------------------------------------------------- batches of torch.func

    def rows(self, settings: Call, batched: Sequence[int], tensors: Tensors) -> Rows | None:
        declaration = CELLS[settings.cell].declaration
        each = {"x": 1, **{name: 0 for name, _ in declaration.each}}
        axes = [each.get(name) for name in NAMES[settings.cell]]
        axes += [None] * (len(tensors) - len(axes))
        # Lengths must not increase: those of a batch are not in order. What a cell saves has an order of its own.
        marked = tensors[-2] is not None
        if marked or any(axes[i] is None for i in batched) or declaration.saved(*settings.settings):
            return None
        return Rows((*axes[:-1], 0), (*(1, 0)[: self.count(settings)], None, None, None, None), True)

    def run_stack(self, settings: Call, stack: int, tensors: Tensors, at: Place) -> tuple[Results, Saved]:
        call, (of_cell, factors, around) = settings, _parts(settings, tensors)
        first, weight, dtype = member(of_cell, 0), None, of_cell[0].dtype
        if through_matrix(call, first, member(factors, 0), at):
            (n, count) = shapes_of(call, first)[0][2], max([t.shape[0] for t in factors if t is not None])
            (weight,), _ = BY_STEM[call.stem].matrix.run((n, n), full(factors, count), False, at)
            weight = weight.to(dtype).expand(stack, *weight.shape[1:]).contiguous()
            call, factors = call._replace(stem="dense"), (weight,)
        _, call, of_cell, factors = _joined(call, of_cell, full(factors, stack), stack)
        shape, last, kept = shapes_of(call, member(of_cell, 0))
        states, h = self.room(stack, shape, dtype, at)
        memory, r = (None, None) if last == (0,) else empty((stack, *last), dtype)
        saved, s = (None, None) if kept == (0,) or at == "gpu" else empty((stack, *kept), dtype)
        forward(call, _read((of_cell, factors, around)), (h, r, s), at, members=stack)
        return (states,) if memory is None else (states, memory), (None, saved, weight)

    def room(self, stack: int, shape: Sequence[int], dtype: torch.dtype, at: Place) -> tuple[Tensor, Any]:
        """Room for the states of a stack of calls, and the array that the kernel fills."""
        del at
        return empty((stack, *shape), dtype)

    def held(self, states: Tensor, at: Place) -> Tensor:
        """States of a stack of calls, or their cotangents, as the kernel reads them."""
        del at
        return states

    def pull_stack(self, settings: Call, stack: int, tensors: Tensors, out: Out, wanted: Flags, at: Place) -> Tensors:
        return self.pull(settings, tensors, out, wanted, at, stack)


class Beside(Recurrence):
    """The same; the states of a stack of calls lie beside one another in memory, (T, B, stack, width)."""

    def room(self, stack: int, shape: Sequence[int], dtype: torch.dtype, at: Place) -> tuple[Tensor, Any]:
        if at == "gpu":
            return super().room(stack, shape, dtype, at)
        steps, batch, width = shape
        whole, array = empty((steps, batch, stack * width), dtype)
        return whole.unflatten(-1, (stack, width)).permute(2, 0, 1, 3), array

    def held(self, states: Tensor, at: Place) -> Tensor:
        return states if at == "gpu" else states.permute(1, 2, 0, 3).contiguous().flatten(2)


SEQUENCE: Plan = Recurrence("Recurrence")
#: For the blocks of one recurrence.
BESIDE: Plan = Beside("RecurrenceOfBlocks")


def decoded(cell: str, stem: str, activation: str, slope: float, settings: Any, *rest: Any) -> Call:
    """The call of an operator, whose settings are numbers: NaN stands for None."""
    return Call(cell, stem, activation, slope, [None if isnan(s) else s for s in settings], *rest)


# ---------------------------------------------------------------- kernels


def _whole(call: Call) -> bool:
    """Whether the result is all the states, from which backward starts."""
    return not call.last and call.checkpoint == "none"


def _joined(
    call: Call, tensors: Tensors, factors: Tensors, stack: int | None = None
) -> tuple[int, Call, Tensors, Tensors]:
    """The call with a dense transition inside the cell's own array of matrices, and the index of that array.

    Where the cell has no such array, or the transition is not dense, the index is -1 and nothing changes. With a stack
    all arrays have the members as first axis.
    """
    names, name = NAMES[call.cell], CELLS[call.cell].declaration.matrices
    if call.stem != "dense" or name not in names:
        return -1, call, tensors, factors
    at, (weight,) = names.index(name), factors
    if stack is None:
        joined = torch.cat((tensors[at], weight[None]))
    else:
        joined = torch.cat((tensors[at].expand(stack, *tensors[at].shape[1:]), weight[:, None]), 1)
    call = call._replace(cell=CELLS[call.cell].declaration.dense, stem="")
    return at, call, [*tensors[:at], joined, *tensors[at + 1 :]], ()


def _forward(
    call: Call, parts: Parts, saving: bool, at: Place
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """The states or the last of each sequence, the memory after them if there is one, what the cell saves, and the
    states for backward.
    """
    tensors, factors, around = parts
    if at == "gpu" and not _whole(call):  # which computes and keeps all states
        whole, *rest = _forward(call._replace(last=False, checkpoint="none"), parts, saving, at)
        h0 = tensors[NAMES[call.cell].index("h0")]
        return _states.last_of(whole, around[-1], call.reverse, h0) if call.last else whole, *rest  # type: ignore[return-value]
    if call.stem == "dense":
        _, call, tensors, factors = _joined(call, tensors, factors)
    (shape, last, kept), dtype = shapes_of(call, tensors), tensors[0].dtype
    result, states, h = _states.written(call, shape, dtype, saving)
    memory, r = (None, None) if last == (0,) else empty(last, dtype)
    save = saving and kept != (0,) and call.checkpoint == "none" and at != "gpu"  # which begins from the states
    saved, s = empty(kept, dtype) if save else (None, None)
    forward(call, _read((tensors, factors, around)), (h, r, s), at)
    if states is not None and result._base is states:  # what is saved must not change with the result
        result = result.clone()
    return result, memory, saved, states


def _backward(
    call: Call, parts: Parts, out: tuple[Tensors, Tensors], wanted: Flags, at: Place, stack: int | None = None
) -> list[Tensor | None]:
    """The wanted gradients: of the tensors, of the transition's arguments, of the state at marks; with a stack those of
    every member.

    `out` are the states for backward, the memory, and what the cell saved; then the cotangents.
    """
    (tensors, factors, around), (read, cts) = parts, out
    if at == "gpu" and not _whole(call):
        return _from_whole(call, parts, out, wanted, at)
    count, (where, call, tensors, factors) = len(tensors), _joined(call, tensors, factors, stack)
    of_cell, like, state = list(wanted[:count]), tensors, around[:1]
    if where >= 0:
        of_cell[where] = of_cell[where] or wanted[count]
    if stack is not None:
        like, state = full(tensors, stack), full(state, stack)
    grads, bars = empty_gradients(of_cell, like)
    more, more_bars = empty_gradients(wanted[count : count + len(factors)], factors)
    (start_bar,), (own_bar,) = empty_gradients((wanted[-1] and around[1] is not None,), state)
    states, *rest = arrays(read)
    out = (_states.read(call, states), *rest), arrays(cts)
    backward(call, _read((tensors, factors, around)), *out, (bars, more_bars, own_bar), at, stack)
    if where < 0:
        return [*grads, *more, start_bar]
    both = grads[where]
    first, last = (
        (None, None) if both is None else (both.narrow(-3, 0, both.shape[-3] - 1), both.select(-3, -1).clone())
    )
    return [*grads[:where], first, *grads[where + 1 :], last, start_bar]


def _from_whole(
    call: Call, parts: Parts, out: tuple[Tensors, Tensors], wanted: Flags, at: Place
) -> list[Tensor | None]:
    """`_backward` from all states."""
    (_, _, (_, _, lengths)), (read, (ct, *others)) = parts, out
    whole = ct if ct is None or not call.last else _states.spread(ct, read[0], lengths, call.reverse)
    plain = call._replace(last=False, checkpoint="none")
    grads = _backward(plain, parts, (read, [whole, *others]), wanted, at)
    at_h0 = NAMES[call.cell].index("h0")
    h0_bar = grads[at_h0]
    if call.last and ct is not None and lengths is not None and h0_bar is not None:
        grads[at_h0] = torch.where((lengths > 0)[:, None], h0_bar, ct)
    return grads
