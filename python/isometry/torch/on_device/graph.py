"""The loop over time as one operation of a compiled graph: `isometry::steps` and `isometry::steps_backward`.

`torch.compile` would record the operations of every step: minutes of compilation, and anew for each number of steps.
What does not depend on the steps is traced, and fused with what is around it. The operators have no derivative of their
own, and a Function connects them. Nothing in them waits for a value.
"""

from collections.abc import Sequence
from math import isnan, nan
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from .._dispatch.function import distinct
from .._dispatch.mode import wanted
from ..formulas.sequence import Law
from .loop import Loop, backward, prepared

_SCHEMA = (
    "str cell, str activation, float slope, float[] settings, bool last, bool reverse, "
    "Tensor? inside, Tensor?[] arrays, "
)
#: The place of `last` among the encoded settings.
_LAST = 4


def _decoded(encoded: Sequence[Any], inside: Tensor | None) -> Loop:
    """The call of an operator, whose settings are numbers: NaN stands for None."""
    cell, activation, slope, settings, last, reverse = encoded
    own = tuple([None if isnan(s) else s for s in settings])
    return Loop(cell, Law(activation, slope, own, last), inside, reverse)


def _encoded(call: Loop) -> tuple[Any, ...]:
    law = call.law
    return call.cell, law.activation, law.slope, [nan if s is None else s for s in law.settings], law.last, call.reverse


def _whole(encoded: Sequence[Any], inside: Tensor | None) -> bool:
    """Whether the result is all states as they are; else these are saved beside it."""
    return not encoded[_LAST] and inside is None


def _forward(*arguments: Any) -> list[Tensor]:
    *encoded, inside, arrays, saving = arguments
    result, found, saved = _decoded(encoded, inside).run_prepared(arrays, saving)
    if not saving:
        return [result]
    return [result, *saved] if _whole(encoded, inside) else [result, found, *saved]


def _of_shapes(*arguments: Any) -> list[Tensor]:
    """Of one step, whose axis is then that of all: the number of steps may be a symbol."""
    *encoded, inside, (drive, *others), saving = arguments
    first = _forward(*encoded, None if inside is None else inside[:1], (drive[:1], *others), saving)
    kept = int(encoded[_LAST])  # the last state has no axis of steps
    return [
        t.new_empty((drive.shape[0], *t.shape[1:]) if k >= kept and t.dim() > 1 else t.shape)
        for k, t in enumerate(first)
    ]


def _backward(*arguments: Any) -> list[Tensor]:
    *encoded, inside, arrays, found, saved, ct, asked = arguments
    grads = backward(_decoded(encoded, inside), arrays, tuple(saved), found, ct.contiguous(), asked)
    return [
        arrays[0].new_empty(0) if not w else torch.zeros_like(t) if g is None else g
        for g, t, w in zip(grads, arrays, asked, strict=True)
    ]


def _of_gradients(*arguments: Any) -> list[Tensor]:
    *_, arrays, _, _, _, asked = arguments
    return [t.new_empty(t.shape) if w else arrays[0].new_empty(0) for t, w in zip(arrays, asked, strict=True)]


def _operator(name: str, more: str, run: Any, fake: Any) -> Any:
    schema = f"({_SCHEMA}{more}) -> Tensor[]"
    made = torch.library.custom_op(f"isometry::{name}", run, mutates_args=(), schema=schema)
    made.register_fake(fake)
    return getattr(torch.ops.isometry, name).default


STEPS = _operator("steps", "bool saving", _forward, _of_shapes)
STEPS_BACKWARD = _operator(
    "steps_backward", "Tensor found, Tensor[] saved, Tensor ct, bool[] wanted", _backward, _of_gradients
)


class _Steps(Function):
    """The states in a graph, with the gradients of the prepared arrays that are wanted."""

    @staticmethod
    def forward(ctx: Any, encoded: Any, asked: Any, inside: Any, *arrays: Any) -> Tensor:
        result, *states = STEPS(*encoded, inside, arrays, True)
        if _whole(encoded, inside):
            states = [result, *states]
        ctx.encoded, ctx.asked, ctx.count = encoded, asked, len(arrays)
        ctx.save_for_backward(inside, *arrays, *states)
        return result  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        inside, *kept = ctx.saved_tensors
        arrays, (found, *saved) = kept[: ctx.count], kept[ctx.count :]
        grads = STEPS_BACKWARD(*ctx.encoded, inside, arrays, found, saved, ct, ctx.asked)
        return (None, None, None, *[g if w else None for g, w in zip(grads, ctx.asked, strict=True)])


def in_graph(call: Loop, given: Sequence[Any]) -> Tensor:
    """The states, or the last ones, in a graph."""
    arrays, encoded = distinct(*prepared(call, given)), _encoded(call)
    asked = wanted(arrays)
    if True in asked:
        return _Steps.apply(encoded, asked, call.inside, *arrays)  # type: ignore[no-any-return, no-untyped-call]
    return STEPS(*encoded, call.inside, arrays, False)[0]  # type: ignore[no-any-return]
