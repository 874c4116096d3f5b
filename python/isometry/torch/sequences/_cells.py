"""The computation of the declared cells: their formulas, and the call of their kernels."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from ... import _core
from ..._backend import Place
from ..._cells import declaration
from ..._cells._declaration import Cell
from .._dispatch.function import Array
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


def law(call: Call) -> Law:
    """What the formula takes; a function, since torch 2.8 does not trace a property of a named tuple."""
    return Law(call.activation, call.slope, tuple(call.settings), call.last)


class Kernels(NamedTuple):
    """A cell on tensors: its declaration and its formula."""

    declaration: Cell
    formula: Formula

    def operands(self, arrays: Tensors, matrix: Tensors) -> list[Any]:
        """The matrices that `pack` writes: those of the cell's arrays, and that of a transition."""
        given, found = dict(zip(self.declaration.kernel, arrays, strict=True)), []
        for name, parts in self.declaration.packs:
            rows = given[name].flatten(0, -2)
            found += rows.split([len(rows) // sum(parts) * part for part in parts])
        return [*found, *matrix]


def _given(call: Call, read: Read) -> tuple[str, Any, tuple[Any, ...], Any, Any]:
    """What both directions pass to the kernel."""
    factors, tensors, ends, starts = read
    marks, state = (None, None) if starts is None else starts
    transition = (call.stem, factors) if call.stem else None
    law = call.activation, call.slope, call.settings
    return call.cell, transition, (*tensors, state), law, (ends, call.reverse, marks)


def forward(
    call: Call, read: Read, out: Results, at: Place, packs: Array | None = None, members: int | None = None
) -> None:
    """Fills the results; in an ensemble every array has the members as first axis, or 1 for all of them."""
    _core.sequence(*_given(call, read), out, at, packs, members)


def backward(
    call: Call, read: Read, out: Results, cts: Results, bars: Bars, at: Place, members: int | None = None
) -> None:
    """Fills the gradients from the results and their cotangents."""
    of_cell, of_factors, start_bar = bars
    _core.sequence_vjp(
        *_given(call, read), out, (*cts, None)[:2], (*of_cell, start_bar), tuple(of_factors), at, members
    )


def _found(name: str) -> Kernels:
    module = import_module(f"isometry.torch.formulas.{name}")
    return Kernels(declaration(name), module.formula)


#: By the name of the cell in a graph.
CELLS = {name: _found(name) for name in _core.CELLS}

#: The arrays that the kernel of a cell takes.
NAMES = {cell: list(kernels.declaration.kernel) for cell, kernels in CELLS.items()}

#: None for each of them.
NOTHING: dict[str, dict[str, Any]] = {cell: dict.fromkeys(names) for cell, names in NAMES.items()}
