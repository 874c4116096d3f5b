"""Layers of torch by the kernels: one call where no gradient is recorded, else one for each layer and direction."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from isometry import _core
from isometry._cells.gru import R_FIRST
from isometry.torch._dispatch.function import threads
from isometry.torch._dispatch.mode import KERNEL, RECORDED
from isometry.torch._dispatch.private import uncompiled
from isometry.torch._dispatch.results import computed
from isometry.torch.nn._base import packed_rows
from isometry.torch.sequences._cells import NOTHING
from isometry.torch.sequences._cells import Call as Law
from isometry.torch.sequences._plan import SEQUENCE


class Kind(NamedTuple):
    """A recurrent layer of torch."""

    name: str
    gates: int
    parts: int  #: vectors of a state
    cell: str
    law: tuple[str, float, tuple[float, ...]]  #: the activation with its slope, and the settings, as kernels take them


KINDS = {
    kind.name: kind
    for kind in (
        Kind("lstm", 4, 2, "lstm", ("tanh", 0.0, ())),
        Kind("gru", 3, 1, "gru", ("tanh", 0.0, (R_FIRST,))),
        Kind("rnn_tanh", 1, 1, "recurrence", ("tanh", 0.0, (False,))),
        Kind("rnn_relu", 1, 1, "recurrence", ("relu", 0.0, (False,))),
    )
}


class Call(NamedTuple):
    """A call that fits the kernels."""

    kind: Kind
    states: Sequence[Tensor]  #: h and c before the first step, (layers * directions, B, n) each
    weights: Sequence[Tensor]
    each: int  #: weights of a layer in one direction
    directions: int
    dropout: float
    n: int
    recorded: bool


def results(x: Tensor, call: Call, counts: list[int] | None = None) -> tuple[Tensor, ...] | None:
    """The output and the last states for x (T, B, d), or for packed x (entries, d) with `counts` entries per step; None
    where the tensors do not fit.
    """
    if not call.recorded and not call.dropout and (found := _unrecorded(x, call, counts)) is not None:
        return found
    if not _fits(x, call, x.shape[1] if counts is None else counts[0]):
        return None
    if counts is None:
        output, last = _layers(x, call, None, lambda x, p: torch.dropout(x.contiguous(), p, True))
        return (output.clone(memory_format=torch.contiguous_format) if call.directions == 1 else output), *last
    shape = len(counts), counts[0]
    rows, lengths = packed_rows(torch.tensor(counts, device="cpu"))

    def spread(entries: Tensor) -> Tensor:
        room = entries.new_zeros(shape[0] * shape[1], entries.shape[1])
        return room.index_copy(0, rows, entries).unflatten(0, shape)

    def gathered(padded: Tensor) -> Tensor:
        return padded.flatten(0, 1).index_select(0, rows)

    output, last = _layers(spread(x), call, lengths, lambda x, p: spread(torch.dropout(gathered(x), p, True)))
    return gathered(output), *last


def _fits(x: Tensor, call: Call, batch: int) -> bool:
    """Whether all tensors are of one dtype, of the shapes that torch expects, and lie aligned in the CPU's memory."""
    kind, held, weights, each, directions, _, n, _ = call
    count, rows = len(weights) // each, kind.gates * n
    shapes = [x.shape, *[(count, batch, n)] * len(held)]
    for i in range(count):
        shapes += [(rows, x.shape[-1] if i < directions else directions * n), (rows, n)]
        shapes += [(rows,)] * (each - 2)
    for t, shape in zip((x, *held, *weights), shapes, strict=True):
        like = t.dtype is x.dtype and t.is_cpu and t.layout is torch.strided and t.shape == shape
        if not like or not t.data_ptr() or t.data_ptr() % t.itemsize:  # zeros without memory, numbers across words
            return False
    return True


def _unrecorded(x: Tensor, call: Call, counts: list[int] | None) -> tuple[Tensor, ...] | None:
    """`results` without gradients and dropout; None where the kernel reads no tensors (torch before 2.10), or refuses
    these.
    """
    kind, held, weights, each, directions, _, n, _ = call
    try:
        x = x.contiguous()
        if not all(map(Tensor.is_contiguous, (*held, *weights))):
            held, weights = [t.contiguous() for t in held], [t.contiguous() for t in weights]
    except RuntimeError:  # sparse tensors have no order
        return None
    count, lasts = len(weights) // each, []
    if any(len(t) != count for t in held):
        return None
    for i in range(0, count, directions):
        outputs = []
        for k in range(i, i + directions):
            output = x.new_empty((*x.shape[:-1], n))
            states = held if count == 1 else [t[k : k + 1] for t in held]
            own = weights[k * each : (k + 1) * each]
            last = one_layer(kind, x, states, own, output, (k > i, counts))
            if last is None:
                return None
            outputs.append(output)
            lasts.append(last)
        x = outputs[0] if directions == 1 else torch.cat(outputs, -1)
    return x, *(lasts[0] if count == 1 else map(torch.cat, zip(*lasts, strict=True)))


def one_layer(
    kind: Kind,
    x: Tensor,
    held: Sequence[Tensor],
    weights: Sequence[Tensor],
    output: Tensor | None,
    order: tuple[bool, list[int] | None] = (False, None),
) -> tuple[Tensor, ...] | None:
    """The parts of the last state of one layer in one direction, without gradients, and into `output` all states, if it
    is wanted; None where tensors are not of one dtype, do not fit, or are not in C order.

    `order` says whether x is read from its end, and how many sequences have each step of packed x.
    """
    u, w, b, second = weights if len(weights) == 4 else (*weights, None, None)
    if b is not None and second is not None and b.dim() + second.dim() != 2:
        return None
    own: tuple[Any, Any] = None, second
    arrays: tuple[Any, ...]
    if kind.cell == "gru":
        own, arrays = (None, None), (x, w, u, b, None, second, None, None)
    elif kind.cell == "recurrence":
        own, arrays = (w, second), (x, u, None, b, None, None)
    else:
        arrays = (x, w, u, b, None, None, None)
    new = tuple([torch.empty_like(t) for t in held])
    done = _core.plain_sequence(kind.cell, kind.law, own, arrays, tuple(held), new, output, order, threads())
    return new if done else None


def _layers(
    x: Tensor, call: Call, lengths: Tensor | None, drop: Callable[[Tensor, float], Tensor]
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The output of the last layer (T, B, directions * n), and the last states of all."""
    kind, held, weights, each, directions, dropout, n, recorded = call
    x = x.view_as(x)  # as is done to the weights: what backward reads keeps its memory when `.data` is replaced
    first = held[0] if kind.parts == 1 else _Joined.apply(*held)  # type: ignore[no-untyped-call]
    lasts: list[Tensor] = []
    ends = None if lengths is None else (lengths - 1, torch.arange(len(lengths), device="cpu"))
    for i in range(0, len(first), directions):
        if i and dropout:
            x = drop(x, dropout)
        outputs = []
        for direction in range(directions):
            own = weights[(i + direction) * each : (i + direction + 1) * each]
            states = _states(kind, x, first[i + direction], own, lengths, (bool(direction), recorded))
            lasts.append(states[0] if direction else states[-1] if ends is None else states[ends])
            outputs.append(states[..., :n])
        x = outputs[0] if directions == 1 else torch.cat(outputs, -1)
    return x, tuple([torch.stack([last.narrow(-1, i * n, n) for last in lasts]) for i in range(kind.parts)])


class _Joined(Function):
    """h and c side by side, with gradients that are arrays of their own."""

    @staticmethod
    def forward(_: Any, h: Tensor, c: Tensor) -> Tensor:
        return torch.cat((h, c), -1)

    @staticmethod
    @uncompiled
    def backward(_: Any, ct: Tensor) -> tuple[Tensor, Tensor]:
        h, c = ct.chunk(2, -1)
        return h.clone(), c.clone()


class _Sum(Function):
    """The sum of two biases, whose gradients are arrays of their own."""

    @staticmethod
    def forward(_: Any, first: Tensor, second: Tensor) -> Tensor:
        return first + second

    @staticmethod
    @uncompiled
    def backward(_: Any, ct: Tensor) -> tuple[Tensor, Tensor]:
        return ct, ct.clone()


def _states(
    kind: Kind, x: Tensor, h0: Tensor, weights: Sequence[Tensor], lengths: Tensor | None, law: tuple[bool, bool]
) -> Tensor:
    """All states (T, B, parts * n) of one layer in one direction, zero past the end of a sequence.

    `law` says whether it is read from its end, and whether gradients are recorded.
    """
    reverse, recorded = law
    own, transition = _arrays(kind, weights)
    values = (NOTHING[kind.cell] | own | {"x": x, "h0": h0}).values()
    settings = Law(kind.cell, "dense" if transition else "", *kind.law, reverse)
    how = RECORDED if recorded else KERNEL
    return computed(SEQUENCE, how, "cpu", settings, (*values, *transition, None, None, lengths))[0]


def _arrays(kind: Kind, weights: Sequence[Tensor]) -> tuple[dict[str, Tensor | None], tuple[Tensor, ...]]:
    """The arrays of the cell by name, and those of the transition."""
    u, w, *biases = weights
    if kind.cell == "gru":
        # copies of the biases, which may change before the backward pass
        given = {"w": w, "u": u} | {name: t.clone() for name, t in zip(("b", "hidden_bias"), biases, strict=False)}
        return {name: t.unflatten(0, (3, -1)) for name, t in given.items()}, ()
    u, w = u.view_as(u), w.view_as(w)
    b = _Sum.apply(*biases) if biases else None  # type: ignore[no-untyped-call]
    return ({"w": w, "u": u, "b": b}, ()) if kind.cell == "lstm" else ({"input_weight": u, "bias": b}, (w,))
