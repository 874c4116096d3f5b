"""The differentiable kernel call of a cell over a sequence: eager, and as one operation of a compiled graph.

`torch.compile` must not unroll a loop over the time steps and cannot trace a kernel: it sees the two operators
`isometry::sequence` and `isometry::sequence_backward`. They have no derivative of their own, so they cannot be
differentiated incorrectly: the Function below connects them, as it connects the kernels. The backend, and the choice
between W and its factors, are decided when they run, so one graph serves any number of steps and sequences.

Tensors are in the order of the cell's kernel; lengths do not increase. Saved for backward are the arguments, the
states, and what the cell declares; or with a checkpoint, some states (`_lean`). A compiled graph with a checkpoint
saves none: its backward computes them first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from .. import _core
from .._backend import Place
from . import _lean
from ._cells import CELLS, Call
from ._function import Array, arrays, fakes, filled, formula_vjp, given, mark, marked, place, place_of, room, rooms
from ._mode import differentiated
from .formulas.sequence import states
from .operators._compiled import owned
from .operators._functions import BY_STEM, trained

Tensors = Sequence[Tensor | None]
#: The states or the last of each sequence, the memory after them, what the cell saves, and the states for backward.
Out = tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]


def shapes_of(call: Call, tensors: Tensors) -> tuple[Any, Any, Any]:
    """Shapes of the states, the memory after them, and what forward saves; (0,) where absent."""
    x, weight, declaration = tensors[0], tensors[1], CELLS[call.cell].declaration
    assert x is not None and weight is not None
    shape = x.shape
    return declaration.results(tuple(call.settings), shape[0], shape[1], declaration.size((shape, weight.shape)))


# ---------------------------------------------------------------- kernels


def ends(lengths: Tensor | None) -> Array | None:
    """The lengths, as a kernel takes them."""
    return None if lengths is None else given(lengths.reshape(-1))


def _joined(call: Call, tensors: Tensors, own: Tensors) -> tuple[int, Call, Tensors, Tensors]:
    """The call with a dense transition inside the cell's own array of matrices, and the index of that array.

    Where the cell has no such array, or the transition is not dense, the index is -1 and nothing changes.
    """
    declaration = CELLS[call.cell].declaration
    names, name = declaration.names, declaration.matrices
    if call.stem != "dense" or name not in names:
        return -1, call, tensors, own
    at, (weight,) = names.index(name), own
    others = tensors[at]
    assert others is not None and weight is not None
    return at, call._replace(stem=""), [*tensors[:at], torch.cat((others, weight[None])), *tensors[at + 1 :]], ()


def forward(call: Call, tensors: Tensors, own: Tensors, lengths: Tensor | None, saving: bool, at: Place) -> Out:
    """The result, the memory after it if there is one, and what is saved if backward will run."""
    if at == "gpu" and (call.last or call.checkpoint != "none"):  # which computes and keeps all states
        whole, *rest = forward(call._replace(last=False, checkpoint="none"), tensors, own, lengths, saving, at)
        h0 = tensors[CELLS[call.cell].declaration.names.index("h0")]
        return _lean.last_of(whole, lengths, call.reverse, h0) if call.last else whole, *rest  # type: ignore[return-value]
    if call.stem == "dense":
        _, call, tensors, own = _joined(call, tensors, own)
    (shape, last, kept), x = shapes_of(call, tensors), tensors[0]
    assert x is not None
    result, states, h = _lean.written(call, shape, x.dtype, saving)
    memory, r = (None, None) if last == (0,) else room(last, x.dtype)
    save = saving and kept != (0,) and call.checkpoint == "none"
    saved, s = room(kept, x.dtype) if save else (None, None)
    CELLS[call.cell].forward(call, arrays(own), arrays(tensors), ends(lengths), (h, r, s), at)
    if states is not None and result._base is states:  # what is saved must not change with the result
        result = result.clone()
    return result, memory, saved, states


def backward(
    call: Call,
    tensors: Tensors,
    own: Tensors,
    lengths: Tensor | None,
    out: Tensors,
    cts: Tensors,
    wanted: Sequence[bool],
    at: Place,
) -> list[Tensor | None]:
    """The wanted gradients: of the tensors, then of the transition's arguments.

    `out` are the states for backward, computed here if they are None, the memory, and what the cell saved.
    """
    states, memory, saved = out
    if states is None:
        _, memory, saved, states = forward(call, tensors, own, lengths, True, at)
    assert states is not None
    if at == "gpu" and (call.last or call.checkpoint != "none"):
        return _whole(call, tensors, own, lengths, (states, memory, saved), cts, wanted, at)
    count, (where, call, tensors, own) = len(tensors), _joined(call, tensors, own)
    asked = list(wanted[:count])
    if where >= 0:
        asked[where] = asked[where] or wanted[count]
    (grads, bars), (own_grads, own_bars) = rooms(asked, tensors), rooms(wanted[count : count + len(own)], own)
    read = (arrays(own), arrays(tensors), ends(lengths))
    kept, *rest = arrays((states, memory, saved))
    results = ((_lean.read(call, kept), *rest), arrays(cts))  # type: ignore[arg-type]
    CELLS[call.cell].backward(call, *read, *results, bars, own_bars, at)
    found = [*grads, *own_grads]
    if where >= 0:
        both = found[where]
        found[where], last = (None, None) if both is None else (both[:-1], both[-1].clone())
        found.append(last)
    return found


def _whole(
    call: Call,
    tensors: Tensors,
    own: Tensors,
    lengths: Tensor | None,
    out: tuple[Tensor, Tensor | None, Tensor | None],
    cts: Tensors,
    wanted: Sequence[bool],
    at: Place,
) -> list[Tensor | None]:
    """`backward` from all states."""
    plain, (ct, *others) = call._replace(last=False, checkpoint="none"), cts
    whole = ct if ct is None or not call.last else _lean.spread(ct, out[0], lengths, call.reverse)
    grads = backward(plain, tensors, own, lengths, out, [whole, *others], wanted, at)
    at_h0 = CELLS[call.cell].declaration.names.index("h0")
    h0_bar = grads[at_h0]
    if call.last and ct is not None and lengths is not None and h0_bar is not None:
        grads[at_h0] = torch.where((lengths > 0)[:, None], h0_bar, ct)
    return grads


# ---------------------------------------------------------------- the choice between W and its factors


def through_matrix(call: Call, tensors: Tensors, own: Tensors, at: Place) -> bool:
    """Whether W is formed, because that is cheaper than its factors."""
    x = tensors[0]
    assert x is not None
    if not _forms(call.stem) or at == "gpu":
        return False
    gated = not CELLS[call.cell].declaration.operator
    return _core.recurrence_route(call.stem, arrays(own), x.shape[0], x.shape[1], gated) == "dense"


def _forms(stem: str) -> bool:
    """Whether W may have to be formed."""
    return stem not in ("", "dense")


def forward_by_route(
    call: Call, saving: bool, tensors: Tensors, own: Tensors, lengths: Tensor | None, at: Place
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """`forward` by the cheaper route, and W if it was formed."""
    weight: Tensor | None = None
    if through_matrix(call, tensors, own, at):
        n = shapes_of(call, tensors)[0][2]
        weight, w = room((n, n), tensors[0].dtype)  # type: ignore[union-attr]
        _core.operator_matrix(call.stem, arrays(own), w, False, at)
        call, own = call._replace(stem="dense"), (weight,)
    return *forward(call, tensors, own, lengths, saving, at), weight


def backward_by_route(
    call: Call,
    tensors: Tensors,
    own: Tensors,
    lengths: Tensor | None,
    out: Sequence[Tensor | None],
    cts: Tensors,
    wanted: Sequence[bool],
    at: Place,
) -> list[Tensor | None]:
    """`backward` from the results of `forward_by_route`."""
    *results, weight = out
    if weight is None:
        return backward(call, tensors, own, lengths, tuple(results), cts, wanted, at)  # type: ignore[arg-type]
    rest, count = (lengths, tuple(results), cts), len(tensors)
    ask = (*wanted[:count], any(wanted[count:]))
    *grads, w_bar = backward(call._replace(stem="dense"), tensors, (weight,), *rest, ask, at)  # type: ignore[arg-type]
    own_grads, bars = rooms(wanted[count:], own)
    if w_bar is not None:
        _core.operator_matrix_vjp(call.stem, arrays(own), None, given(w_bar), bars, at)
    return [*grads, *own_grads]


# ---------------------------------------------------------------- one operation of a compiled graph


def _call(
    cell: str,
    stem: str,
    activation: str,
    slope: float,
    settings: Sequence[float],
    reverse: bool,
    checkpoint: str = "none",
    last: bool = False,
) -> Call:
    """The call of an operator, whose settings are numbers: NaN stands for None."""
    own = [None if isnan(s) else s for s in settings]
    return Call(cell, stem, activation, slope, own, reverse, None, checkpoint, last)


@torch.library.custom_op("isometry::sequence", mutates_args=(), device_types="cpu")
def _forward(
    cell: str,
    stem: str,
    activation: str,
    slope: float,
    settings: Sequence[float],
    reverse: bool,
    checkpoint: str,
    last: bool,
    backend: str | None,
    saving: bool,
    tensors: Tensors,
    own: Tensors,
    lengths: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    at, call = place(backend), _call(cell, stem, activation, slope, settings, reverse, checkpoint, last)
    saving = saving and checkpoint == "none"
    result, memory, saved, states, weight = forward_by_route(call, saving, tensors, own, lengths, at)
    if weight is None and _forms(stem):
        n = result.shape[-1]
        weight = result.new_zeros((n, n))
    # An operator returns tensors only, and none twice.
    others = memory, saved, None if states is result else states, weight
    return result, *[result.new_empty(0) if t is None else t for t in others], marked(at)  # type: ignore[return-value]


@_forward.register_fake
def _(
    cell: str,
    stem: str,
    activation: str,
    slope: float,
    settings: Sequence[float],
    reverse: bool,
    checkpoint: str,
    last: bool,
    _backend: str | None,
    saving: bool,
    tensors: Tensors,
    _own: Tensors,
    _lengths: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    call = _call(cell, stem, activation, slope, settings, reverse, checkpoint, last)
    states, memory, saved = shapes_of(call, tensors)
    x, n = tensors[0], states[2]
    assert x is not None
    result, saving = states[1:] if last else states, saving and checkpoint == "none"
    weight = (n, n) if _forms(stem) else (0,)
    shapes = result, memory, saved if saving else (0,), states if saving and last else (0,), weight
    return *[x.new_empty(shape) for shape in shapes], mark()  # type: ignore[return-value]


@torch.library.custom_op("isometry::sequence_backward", mutates_args=(), device_types="cpu")
def _backward(
    cell: str,
    stem: str,
    activation: str,
    slope: float,
    settings: Sequence[float],
    reverse: bool,
    checkpoint: str,
    last: bool,
    tensors: Tensors,
    own: Tensors,
    lengths: Tensor | None,
    out: Sequence[Tensor],
    on_gpu: Tensor,
    cts: Tensors,
    wanted: Sequence[bool],
) -> list[Tensor]:
    at, call = place_of(on_gpu), _call(cell, stem, activation, slope, settings, reverse, checkpoint, last)
    *results, weight = [t if t.numel() else None for t in out]
    weight = weight if through_matrix(call, tensors, own, at) else None
    return filled(backward_by_route(call, tensors, own, lengths, (*results, weight), cts, wanted, at))


@_backward.register_fake
def _(*arguments: Any) -> list[Tensor]:
    return fakes((*arguments[8], *arguments[9]), arguments[-1])


# ---------------------------------------------------------------- the Function


class Recurrence(Function):
    """The states of a call, or the last ones, and the memory after them if the cell has one; `wanted` is None for an
    eager call."""

    @staticmethod
    def forward(ctx: Any, call: Call, wanted: Any, count: int, lengths: Tensor | None, *given: Tensor | None) -> Any:
        tensors, own = given[:count], given[count:]
        if wanted is None:
            ctx.place = place(call.backend)
            result, memory, saved, states = forward(call, tensors, own, lengths, True, ctx.place)
            ctx.save_for_backward(states, memory, saved, lengths, *given)
        else:
            result, memory, saved, states, weight, on_gpu = graph(call, True, tensors, own, lengths)
            states = states if call.last or call.checkpoint != "none" else result
            ctx.save_for_backward(states, memory, saved, weight, on_gpu, lengths, *given)
        ctx.call, ctx.wanted, ctx.count = call, wanted, count
        return (result, memory) if CELLS[call.cell].declaration.memory(*call.settings) else result

    @staticmethod
    def backward(ctx: Any, *cts: Tensor | None) -> tuple[Tensor | None, ...]:
        call, count = ctx.call, ctx.count
        if ctx.wanted is not None:
            *out, on_gpu, lengths = ctx.saved_tensors[:6]
            given = ctx.saved_tensors[6:]
            tensors, own = given[:count], given[count:]
            bars = _backward(*_plain(call)[:8], tensors, own, lengths, out, on_gpu, cts, ctx.wanted)
            return (None, None, None, None, *owned(bars, ctx.wanted))
        states, memory, saved, lengths, *given = ctx.saved_tensors
        tensors, own = given[:count], given[count:]
        wanted = (*ctx.needs_input_grad[4 : 4 + count], *trained(call.stem, ctx.needs_input_grad[4 + count :]))
        if differentiated(*cts):
            return (None, None, None, None, *_formula_vjp(call, count, lengths, given, wanted, cts))
        out = states, memory, saved
        return (None, None, None, None, *backward(call, tensors, own, lengths, out, cts, wanted, ctx.place))


def _plain(call: Call) -> tuple[Any, ...]:
    """The call as an operator takes it."""
    settings = [nan if s is None else float(s) for s in call.settings]
    cell, stem, activation, slope, _, reverse, backend, checkpoint, last = call
    return cell, stem, activation, slope, settings, reverse, checkpoint, last, backend


def graph(call: Call, saving: bool, tensors: Tensors, own: Tensors, lengths: Tensor | None) -> tuple[Tensor, ...]:
    """`forward` as an operation of a graph."""
    return _forward(*_plain(call), saving, tensors, own, lengths)


def _formula_vjp(
    call: Call, count: int, lengths: Tensor | None, given: Tensors, wanted: Sequence[bool], cts: Tensors
) -> list[Tensor | None]:
    """The gradients by the formula."""

    def found(*given: Any) -> tuple[Tensor, ...]:
        weight = BY_STEM[call.stem].matrix_formula(*given[count:]) if call.stem else None
        return states(CELLS[call.cell].formula, call.law, lengths, call.reverse, weight, *given[:count])

    some = lambda *given: tuple([t for t, ct in zip(found(*given), cts, strict=True) if ct is not None])
    return formula_vjp(some, given, wanted, tuple([ct for ct in cts if ct is not None]))
