"""The loop over time, forward and backward, that all cells share.

Past its end a sequence keeps its state: states there are hidden from the result, and no cotangent reaches them.
"""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..formulas._precision import full_precision
from ..formulas.sequence import Formula, Law, states
from . import affine, gru, lstm, rum
from .activation import Phi
from .history import History

#: By the name of a cell: the `matrices` that its `Steps` take, and these.
CELLS: dict[str, ModuleType] = {"recurrence": affine, "gru": gru, "goru": gru, "lstm": lstm, "rum": rum}
FORMULAS: dict[str, Formula] = {cell: import_module(f"isometry.torch.formulas.{cell}").formula for cell in CELLS}


def prepared(call: Any, given: Sequence[Any]) -> tuple[Any, ...]:
    """What does not depend on the steps: the input of all steps, the first state, the activation's bias, matrices."""
    cell, law, *_ = call
    drive, (h0, *_), _ = FORMULAS[cell](law, *given)
    return drive, h0, given[-1], *CELLS[cell].matrices(*given)


def _visible(found: Tensor, inside: Tensor | None) -> Tensor:
    """The array, zero past the end of each sequence."""
    return found if inside is None else torch.where(inside, found, torch.zeros_like(found))


def _steps(call: Any, arrays: Sequence[Any]) -> Any:
    """The cell's steps."""
    cell, law, *_ = call
    drive, _, own, *matrices = arrays
    return CELLS[cell].Steps(Phi(law.activation, law.slope, own), law.settings, drive, *matrices)


def _order(steps: int, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def forward(call: Any, arrays: Sequence[Any], saving: bool) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """The states of all steps, unless only the last is wanted; the last; and what backward reads."""
    (_, law, inside, reverse), (drive, h, *_) = call, arrays
    steps, cell = drive.shape[0], _steps(call, arrays)
    saved, whole = cell.saved(steps if saving else 1), saving or not law.last
    found = h.new_empty(steps if whole else 2, *h.shape)
    for k, t in enumerate(_order(steps, reverse)):
        out = found[t if whole else k % 2]
        cell.step(t, t if saving else 0, h, out)
        if inside is not None:
            torch.where(inside[t], out, h, out=out)
        h = out
    return found, h, saved


class Loop(NamedTuple):
    """A call of `states`, whose gradient is recorded as one operation."""

    cell: str
    law: Law
    inside: Tensor | None  #: (T, B, 1), whether a sequence has not ended; None where all have one length
    reverse: bool

    def run(self, given: Sequence[Any], saving: bool) -> tuple[tuple[Tensor], tuple[Tensor, ...]]:
        """The states, or the last ones; saved are what the cell saves, then all states."""
        result, found, saved = self.run_prepared(prepared(self, given), saving)
        return (result,), (*saved, found)

    def run_prepared(self, arrays: Sequence[Any], saving: bool) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """The result, all states, and what the cell saves."""
        found, last, saved = forward(self, arrays, saving)
        result = last if self.law.last else _visible(found, self.inside)
        return result.clone() if saving and self.law.last else result, found, saved

    def pull(
        self, given: Sequence[Any], saved: Sequence[Any], wanted: Sequence[bool], cts: Sequence[Any]
    ) -> list[Tensor | None]:
        """The wanted gradients."""
        with torch.enable_grad():
            leaves = [t.detach().requires_grad_() if w else t for t, w in zip(given, wanted, strict=True)]
            arrays = prepared(self, leaves)
        trained = [t is not None and t.requires_grad for t in arrays]
        bars = backward(self, arrays, tuple(saved[:-1]), saved[-1], cts[0], trained)
        ends, ways = zip(*[pair for pair in zip(arrays, bars, strict=True) if pair[1] is not None], strict=True)
        asked_for = [t for t, w in zip(leaves, wanted, strict=True) if w]
        grads = iter(torch.autograd.grad(ends, asked_for, ways, allow_unused=True))
        return [next(grads) if w else None for w in wanted]

    def formula(self, *given: Any) -> tuple[Tensor, ...]:
        """The same in operations that autograd records one by one."""
        cell, law, inside, reverse = self
        lengths = None if inside is None else inside.sum(0).squeeze(-1)
        return states(FORMULAS[cell], law, lengths, reverse, *given)[:1]


@full_precision
def _backward_steps(ct: Tensor, call: Any, cell: Any, found: Tensor) -> Tensor:
    """Walks back over all steps; returns the cotangent of the first state."""
    _, law, inside, reverse = call
    order = _order(found.shape[0], reverse)
    if inside is not None and not law.last:
        ct = _visible(ct, inside)
    g, buffers = ct if law.last else ct[order[-1]], (torch.empty_like(found[0]), torch.empty_like(found[0]))
    for k in range(len(order) - 1, -1, -1):
        t, into = order[k], None if law.last or k == 0 else ct[order[k - 1]]
        out = buffers[k % 2]
        if inside is None:
            g = cell.adjoint(t, g, into, out)
        else:
            zero = torch.zeros_like(g)
            kept = torch.where(inside[t], zero, g)
            g = cell.adjoint(t, torch.where(inside[t], g, zero), into, out).add_(kept)
    return g


@torch.no_grad()
def backward(
    call: Any, arrays: Sequence[Any], saved: tuple[Tensor, ...], found: Tensor, ct: Tensor, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """The wanted gradients of the prepared arrays."""
    detached: list[Any] = [None if t is None else t.detach() for t in arrays]
    cell = _steps(call, detached)
    cell.start(History(found, detached[1], call[3]), saved)
    first = _backward_steps(ct, call, cell, found)
    drive, of_h0, *others = wanted
    drive_bar, *bars = cell.gradients((drive, *others))
    return [drive_bar, first if of_h0 else None, *bars]
