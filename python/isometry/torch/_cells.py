"""The computation of the declared cells: their formulas, and the kernels with their own order of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import _core
from .._backend import Place
from .._cells._declaration import Cell
from .._cells.affine import AFFINE
from .._cells.gru import GORU, GRU
from .._cells.rum import RUM
from ._function import Array
from .formulas import gru, recurrence, rum
from .formulas.sequence import Formula, Law

Arrays = tuple[Array | None, ...]
Tensors = Sequence[Any]
#: The states (`_states.States`), the memory after them and what was saved for backward, or the cotangents of the first
#: two; None where absent.
Results = tuple[Any, ...]


class Call(NamedTuple):
    """The parameters of a computation other than tensors."""

    cell: str
    stem: str  # of the transition, "" without one
    activation: str
    slope: float
    settings: Sequence[float | None]
    reverse: bool
    checkpoint: str = "none"
    last: bool = False  # the last state of each sequence is the result, in place of all

    @property
    def law(self) -> Law:
        """What the formula takes."""
        return Law(self.activation, self.slope, tuple(self.settings), self.last)


class Ensemble(NamedTuple):
    """Many calls in one: the kernels also take the number of members, behind the call."""

    forward: Callable[..., None]
    backward: Callable[..., None]


class Kernels(NamedTuple):
    """A cell on tensors.

    The kernels take a call, the arguments of its transition, its arrays and lengths, the results, the place; forward
    also takes the `operands` as `pack` writes them, backward the cotangents and the gradients to fill.
    """

    declaration: Cell
    formula: Formula
    forward: Callable[..., None]
    backward: Callable[..., None]
    operands: Callable[[Call, Tensors, Tensors], Tensors]
    ensemble: Ensemble | None = None


def _affine(call: Call, arrays: Arrays, ends: Any) -> Any:
    x, input_weight, h0, bias, own_bias = arrays
    (on_input,) = call.settings
    law = call.activation, own_bias, call.slope, bool(on_input)
    return (x, input_weight, h0, bias, *law, ends, call.reverse)


def _affine_forward(
    call: Call, own: Arrays, arrays: Arrays, ends: Any, out: Results, at: Place, packs: Array | None = None
) -> None:
    _core.recurrence(call.stem, own, _affine(call, arrays, ends), out[0], at, packs=packs)  # type: ignore[arg-type, type-var]


def _affine_operands(call: Call, arrays: Tensors, own: Tensors) -> Tensors:
    return [arrays[1], *own] if call.stem == "dense" else [arrays[1]]


def _affine_backward(
    call: Call,
    own: Arrays,
    arrays: Arrays,
    ends: Any,
    out: Results,
    cts: Results,
    bars: Arrays,
    rooms: Arrays,
    at: Place,
) -> None:
    given = _affine(call, arrays, ends)
    _core.recurrence_vjp(call.stem, own, given, out[0], cts[0], rooms, bars, at)  # type: ignore[arg-type, type-var]


def _affine_ensemble(call: Call, members: int, own: Arrays, arrays: Arrays, ends: Any, h: Any, at: Place) -> None:
    _core.recurrence_ensemble(members, call.stem, own, _affine(call, arrays, ends), h, at)  # type: ignore[type-var]


def _affine_ensemble_backward(
    call: Call,
    members: int,
    own: Arrays,
    arrays: Arrays,
    ends: Any,
    h: Any,
    ct: Any,
    bars: Arrays,
    rooms: Arrays,
    at: Place,
) -> None:
    given = _affine(call, arrays, ends)
    _core.recurrence_ensemble_vjp(members, call.stem, own, given, h, ct, rooms, bars, at)  # type: ignore[type-var]


def _gru(call: Call, own: Arrays, arrays: Arrays, ends: Any) -> Any:
    *others, own_bias = arrays
    (after,) = call.settings
    given = (*others, bool(after), call.activation, own_bias, call.slope, ends, call.reverse)
    return given, (call.stem, own) if call.stem else None


def _gru_forward(
    call: Call, own: Arrays, arrays: Arrays, ends: Any, out: Results, at: Place, packs: Array | None = None
) -> None:
    states, _, saved = out
    _core.gru(*_gru(call, own, arrays, ends), states, saved, at, packs=packs)  # type: ignore[arg-type, call-arg, misc]


def _gru_operands(_call: Call, arrays: Tensors, _own: Tensors) -> Tensors:
    _, w, u, *_ = arrays
    return [w[:2].flatten(0, 1), *w[2:], u[:2].flatten(0, 1), u[2]]


def _gru_backward(
    call: Call,
    own: Arrays,
    arrays: Arrays,
    ends: Any,
    out: Results,
    cts: Results,
    bars: Arrays,
    rooms: Arrays,
    at: Place,
) -> None:
    states, _, saved = out
    _core.gru_vjp(*_gru(call, own, arrays, ends), states, saved, cts[0], bars, rooms, at)  # type: ignore[arg-type, call-arg]


def _rum(call: Call, arrays: Arrays, ends: Any) -> Any:
    *others, own_bias = arrays
    memory, eta = call.settings
    return (tuple(others), bool(memory), eta, call.activation, own_bias, call.slope, ends, call.reverse)


def _rum_forward(
    call: Call, _own: Arrays, arrays: Arrays, ends: Any, out: Results, at: Place, packs: Array | None = None
) -> None:
    _core.rum(_rum(call, arrays, ends), out, at, packs=packs)  # type: ignore[arg-type]


def _rum_operands(_call: Call, arrays: Tensors, _own: Tensors) -> Tensors:
    _, w, u, *_ = arrays
    return [w, *u.split((len(w), len(u) - len(w)))]


def _rum_backward(
    call: Call, _own: Arrays, arrays: Arrays, ends: Any, out: Results, cts: Results, bars: Arrays, _: Arrays, at: Place
) -> None:
    both = (*cts, None)[:2]
    _core.rum_vjp(_rum(call, arrays, ends), out, both, bars, at)  # type: ignore[arg-type]


#: By the name of the cell in a graph.
CELLS = {
    "recurrence": Kernels(
        AFFINE,
        recurrence.formula,
        _affine_forward,
        _affine_backward,
        _affine_operands,
        Ensemble(_affine_ensemble, _affine_ensemble_backward),
    ),
    "gru": Kernels(GRU, gru.formula, _gru_forward, _gru_backward, _gru_operands),
    "goru": Kernels(GORU, gru.formula, _gru_forward, _gru_backward, _gru_operands),
    "rum": Kernels(RUM, rum.formula, _rum_forward, _rum_backward, _rum_operands),
}

#: The arrays that the kernel of a cell takes; those of an embedding have been joined with others.
NAMES = {cell: [n for n in kernels.declaration.names if not n.startswith("embed")] for cell, kernels in CELLS.items()}
