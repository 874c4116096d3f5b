"""Stacked recurrences of torch's layers by the kernels of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from isometry.torch._dispatch.mode import mode
from isometry.torch._dispatch.results import computed
from isometry.torch.nn._base import packed_rows
from isometry.torch.sequences._cells import NAMES, NOTHING
from isometry.torch.sequences._cells import Call as Law
from isometry.torch.sequences._plan import SEQUENCE

if TYPE_CHECKING:
    from ._operators import Call


class Kind(NamedTuple):
    """A recurrent layer of torch."""

    cell: str
    gates: int
    parts: int  #: vectors of a state
    stem: str  #: of the transition, where it is an argument apart from the cell's
    activation: str
    settings: tuple[float, ...]


KINDS = {
    "lstm": Kind("lstm", 4, 2, "", "tanh", ()),
    "gru": Kind("gru", 3, 1, "", "tanh", (True,)),
    "rnn_tanh": Kind("recurrence", 1, 1, "dense", "tanh", (False,)),
    "rnn_relu": Kind("recurrence", 1, 1, "dense", "relu", (False,)),
}


def _gates(t: Tensor) -> Tensor:
    """torch's gates r, z, h of a GRU (3 n, ...) as z, r, h (3, n, ...)."""
    r, z, h = t.unflatten(0, (3, -1)).unbind(0)
    return torch.stack((z, r, h))


def _arrays(kind: Kind, weights: Sequence[Tensor]) -> tuple[dict[str, Tensor | None], tuple[Tensor, ...]]:
    """The arrays of the cell by name, and those of the transition."""
    u, w, *biases = weights
    b = biases[0] + biases[1] if biases else None
    if kind.cell == "lstm":
        return {"w": w, "u": u, "b": b}, ()
    if kind.cell == "recurrence":
        return {"input_weight": u, "bias": b}, (w,)
    own = {"w": _gates(w), "u": _gates(u)}
    if biases:
        n = len(w) // 3
        summed, first, second = b, biases[0], biases[1]
        own |= {"b": torch.stack((summed[n : 2 * n], summed[:n], first[2 * n :])), "hidden_bias": second[2 * n :]}  # type: ignore[index]
    return own, ()  # type: ignore[return-value]


def _states(
    kind: Kind, x: Tensor, h0: Tensor, weights: Sequence[Tensor], lengths: Tensor | None, reverse: bool
) -> Tensor:
    """All states (T, B, parts * n) of one layer in one direction, zero past the end of a sequence."""
    own, transition = _arrays(kind, weights)
    values = (NOTHING[kind.cell] | own | {"x": x, "h0": h0}).values()
    law = Law(kind.cell, kind.stem, kind.activation, 0.0, kind.settings, reverse)
    how = mode(*values, *transition)
    return computed(SEQUENCE, how, "cpu", law, (*values, *transition, None, None, lengths))[0]


def _layers(
    x: Tensor, call: Call, lengths: Tensor | None, drop: Any
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The output of the last layer (T, B, directions * n), and the last states of all."""
    kind, held, each, directions, dropout = call
    n, layers = held[0].shape[-1], len(each) // directions
    first = held[0] if kind.parts == 1 else torch.cat(held, -1)
    lasts: list[Tensor] = []
    ends = None if lengths is None else (lengths - 1, torch.arange(len(lengths)))
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            states = _states(kind, x, first[i], each[i], lengths, bool(direction))
            lasts.append(states[0] if direction else states[-1] if ends is None else states[ends])
            outputs.append(states[..., :n])
        x = outputs[0] if directions == 1 else torch.cat(outputs, -1)
        if dropout and layer < layers - 1:
            x = drop(x, dropout)
    last = torch.stack(lasts)
    return x, tuple([part.contiguous() for part in last.split(n, -1)])


def padded(x: Tensor, call: Call) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The results for sequences (T, B, d)."""
    output, last = _layers(x, call, None, lambda x, p: F.dropout(x.contiguous(), p))
    return output.contiguous(), last


def packed(data: Tensor, sizes: Tensor, shape: tuple[int, int], call: Call) -> tuple[Tensor, ...]:
    """The results for a PackedSequence of so many steps and sequences."""
    steps, batch = shape
    rows: Tensor | None = None
    if len(data) == steps * batch:
        output, last = padded(data.unflatten(0, shape), call)
        return output.flatten(0, 1), *last
    rows, lengths = packed_rows(sizes)

    def spread(entries: Tensor) -> Tensor:
        return entries.new_zeros(steps * batch, entries.shape[1]).index_copy(0, rows, entries).unflatten(0, shape)

    def drop(x: Tensor, p: float) -> Tensor:
        return spread(F.dropout(x.flatten(0, 1).index_select(0, rows), p))

    output, last = _layers(spread(data), call, lengths, drop)
    return output.flatten(0, 1).index_select(0, rows), *last


def step(kind: Kind, x: Tensor, held: Sequence[Tensor], weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The state after one step of a cell."""
    h0 = held[0] if kind.parts == 1 else torch.cat(tuple(held), -1)
    states = _states(kind, x.unsqueeze(0), h0, weights, None, False)[0]
    return tuple([part.contiguous() for part in states.split(held[0].shape[-1], -1)])
