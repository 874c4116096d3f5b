"""The computation of the declared cells: their formulas, and the kernels with their own order of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import _core
from ..._backend import Place
from ..._cells._declaration import Cell
from ..._cells.affine import AFFINE
from ..._cells.gru import GORU, GRU
from ..._cells.lstm import LSTM
from ..._cells.rum import RUM
from .._dispatch.function import Array
from ..formulas import gru, lstm, recurrence, rum
from ..formulas.sequence import Formula, Law

Arrays = tuple[Array | None, ...]
Tensors = Sequence[Any]
#: The states (`_states.States`), the memory after them and what was saved for backward, or the cotangents of the first
#: two; None where absent.
Results = tuple[Any, ...]
#: Marks of the steps before which the state is another, and that state.
Starts = tuple[Array, Array | None]
#: What a kernel reads: the arguments of the transition, the arrays of the cell, the lengths, the marks.
Read = tuple[Arrays, Arrays, Any, Starts | None]
#: The gradients that a kernel fills: of the arrays, of the arguments of the transition, of the state at marks.
Bars = tuple[Arrays, Arrays, Array | None]


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

    The kernels take a call, what they read, the results, the place; forward also takes the `operands` as `pack` writes
    them, backward the cotangents and the gradients to fill.
    """

    declaration: Cell
    formula: Formula
    forward: Callable[..., None]
    backward: Callable[..., None]
    operands: Callable[[Call, Tensors, Tensors], Tensors]
    ensemble: Ensemble | None = None


def _affine(call: Call, read: Read) -> Any:
    _, (x, input_weight, h0, bias, own_bias), ends, _ = read
    (on_input,) = call.settings
    law = call.activation, own_bias, call.slope, bool(on_input)
    return (x, input_weight, h0, bias, *law, ends, call.reverse)


def _affine_forward(call: Call, read: Read, out: Results, at: Place, packs: Array | None = None) -> None:
    given = _affine(call, read)
    _core.recurrence(call.stem, read[0], given, out[0], at, packs=packs, starts=read[3])  # type: ignore[type-var]


def _affine_operands(call: Call, arrays: Tensors, own: Tensors) -> Tensors:
    return [arrays[1], *own] if call.stem == "dense" else [arrays[1]]


def _affine_backward(call: Call, read: Read, out: Results, cts: Results, bars: Bars, at: Place) -> None:
    of_cell, of_factors, start_bar = bars
    given = _affine(call, read)
    _core.recurrence_vjp(call.stem, read[0], given, out[0], cts[0], of_factors, of_cell, at, read[3], start_bar)


def _affine_ensemble(call: Call, members: int, read: Read, h: Any, at: Place) -> None:
    _core.recurrence_ensemble(members, call.stem, read[0], _affine(call, read), h, at, read[3])  # type: ignore[type-var]


def _affine_ensemble_backward(call: Call, members: int, read: Read, h: Any, ct: Any, bars: Bars, at: Place) -> None:
    (of_cell, of_factors, start_bar), given = bars, _affine(call, read)
    _core.recurrence_ensemble_vjp(
        members, call.stem, read[0], given, h, ct, of_factors, of_cell, at, read[3], start_bar
    )


def _gru(call: Call, read: Read) -> Any:
    factors, (*others, own_bias), ends, _ = read
    (after,) = call.settings
    given = (*others, bool(after), call.activation, own_bias, call.slope, ends, call.reverse)
    return given, (call.stem, factors) if call.stem else None


def _gru_forward(call: Call, read: Read, out: Results, at: Place, packs: Array | None = None) -> None:
    states, _, saved = out
    given, transition = _gru(call, read)
    _core.gru(given, transition, states, saved, at, packs=packs, starts=read[3])  # type: ignore[arg-type]


def _gru_operands(_call: Call, arrays: Tensors, _own: Tensors) -> Tensors:
    _, w, u, *_ = arrays
    return [w[:2].flatten(0, 1), *w[2:], u[:2].flatten(0, 1), u[2]]


def _gru_backward(call: Call, read: Read, out: Results, cts: Results, bars: Bars, at: Place) -> None:
    states, _, saved = out
    given, transition = _gru(call, read)
    of_cell, of_factors, start_bar = bars
    kept = states, saved, cts[0]
    _core.gru_vjp(given, transition, *kept, of_cell, of_factors, at, read[3], start_bar)  # type: ignore[arg-type]


def _lstm(call: Call, read: Read) -> Any:
    _, (*others, _), ends, _ = read
    return (*others, ends, call.reverse)


def _lstm_forward(call: Call, read: Read, out: Results, at: Place, packs: Array | None = None) -> None:
    states, _, saved = out
    _core.lstm(_lstm(call, read), states, saved, at, packs=packs, starts=read[3])  # type: ignore[arg-type]


def _lstm_operands(_call: Call, arrays: Tensors, _own: Tensors) -> Tensors:
    return arrays[1:3]


def _lstm_backward(call: Call, read: Read, out: Results, cts: Results, bars: Bars, at: Place) -> None:
    states, _, saved = out
    of_cell, _, start_bar = bars
    kept = states, saved, cts[0]
    _core.lstm_vjp(_lstm(call, read), *kept, of_cell[:-1], at, read[3], start_bar)  # type: ignore[arg-type]


def _rum(call: Call, read: Read) -> Any:
    _, (*others, own_bias), ends, _ = read
    memory, eta = call.settings
    return (tuple(others), bool(memory), eta, call.activation, own_bias, call.slope, ends, call.reverse)


def _rum_forward(call: Call, read: Read, out: Results, at: Place, packs: Array | None = None) -> None:
    _core.rum(_rum(call, read), out, at, packs=packs, starts=read[3])  # type: ignore[arg-type]


def _rum_operands(_call: Call, arrays: Tensors, _own: Tensors) -> Tensors:
    _, w, u, *_ = arrays
    return [w, *u.split((len(w), len(u) - len(w)))]


def _rum_backward(call: Call, read: Read, out: Results, cts: Results, bars: Bars, at: Place) -> None:
    given = _rum(call, read)
    _core.rum_vjp(given, out, (*cts, None)[:2], bars[0], at, read[3], bars[2])  # type: ignore[arg-type]


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
    "lstm": Kernels(LSTM, lstm.formula, _lstm_forward, _lstm_backward, _lstm_operands),
    "rum": Kernels(RUM, rum.formula, _rum_forward, _rum_backward, _rum_operands),
}

#: The arrays that the kernel of a cell takes; those of an embedding have been joined with others.
NAMES = {cell: [n for n in kernels.declaration.names if not n.startswith("embed")] for cell, kernels in CELLS.items()}
