"""What the declared cells are computed by: their formulas, and the kernels with their own order of arguments."""

from __future__ import annotations

from collections.abc import Callable
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


class Given(NamedTuple):
    """The arguments of a kernel."""

    law: Law
    stem: str  # of the transition, "" without one
    own: Arrays  # of the transition
    arrays: Arrays  # of the cell
    lengths: Any
    reverse: bool


class Results(NamedTuple):
    """What a cell returns, or the cotangents of it; None for what it does not."""

    states: Array
    memory: Array | None = None
    saved: Array | None = None


class Bars(NamedTuple):
    """Room for the gradients that are wanted."""

    arrays: Arrays
    own: Arrays


class Kernels(NamedTuple):
    """A cell on tensors."""

    declaration: Cell
    formula: Formula
    forward: Callable[[Given, Results, Place], None]
    backward: Callable[[Given, Results, Results, Bars, Place], None]


def _affine(given: Given) -> Any:
    (*arrays, own_bias), (on_input,) = given.arrays, given.law.settings
    activation, slope, _ = given.law
    return (*arrays, activation, own_bias, slope, bool(on_input), given.lengths, given.reverse)


def _affine_forward(given: Given, out: Results, at: Place) -> None:
    _core.recurrence(given.stem, given.own, _affine(given), out.states, at)


def _affine_backward(given: Given, out: Results, cts: Results, bars: Bars, at: Place) -> None:
    _core.recurrence_vjp(given.stem, given.own, _affine(given), out.states, cts.states, bars.own, bars.arrays, at)


def _gru(given: Given) -> tuple[Any, Any]:
    (*arrays, own_bias), (after,) = given.arrays, given.law.settings
    activation, slope, _ = given.law
    sequence = (*arrays, bool(after), activation, own_bias, slope, given.lengths, given.reverse)
    return sequence, (given.stem, given.own) if given.stem else None


def _gru_forward(given: Given, out: Results, at: Place) -> None:
    sequence, transition = _gru(given)
    _core.gru(sequence, transition, out.states, out.saved, at)  # type: ignore[arg-type]


def _gru_backward(given: Given, out: Results, cts: Results, bars: Bars, at: Place) -> None:
    sequence, transition = _gru(given)
    _core.gru_vjp(sequence, transition, out.states, out.saved, cts.states, bars.arrays, bars.own, at)  # type: ignore[arg-type]


def _rum(given: Given) -> Any:
    (*arrays, own_bias), (memory, eta) = given.arrays, given.law.settings
    activation, slope, _ = given.law
    return (tuple(arrays), bool(memory), eta, activation, own_bias, slope, given.lengths, given.reverse)


def _rum_forward(given: Given, out: Results, at: Place) -> None:
    _core.rum(_rum(given), out, at)  # type: ignore[arg-type]


def _rum_backward(given: Given, out: Results, cts: Results, bars: Bars, at: Place) -> None:
    _core.rum_vjp(_rum(given), out, cts[:2], bars.arrays, at)  # type: ignore[arg-type]


#: By the name that a graph knows a cell by.
CELLS = {
    "recurrence": Kernels(AFFINE, recurrence.formula, _affine_forward, _affine_backward),
    "gru": Kernels(GRU, gru.formula, _gru_forward, _gru_backward),
    "goru": Kernels(GORU, gru.formula, _gru_forward, _gru_backward),
    "rum": Kernels(RUM, rum.formula, _rum_forward, _rum_backward),
}
