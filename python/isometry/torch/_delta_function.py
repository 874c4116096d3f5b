"""The differentiable kernel call of `delta_rule`: eager, and as one operation of a compiled graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from .. import _core
from .._rules import check_delta
from ._function import arrays, fakes, filled, formula_vjp, given, room, rooms, threads
from ._mode import differentiated
from .formulas import delta
from .operators._compiled import owned

Tensors = Sequence[Tensor | None]


class Call(NamedTuple):
    """The arguments that are no arrays of numbers."""

    householders: int
    scale: float
    normalise: bool


def _shapes(tensors: Tensors, ends: Tensor | None, call: Call) -> tuple[Any, Any, Any]:
    """Shapes of the outputs, of the states behind the sequences, and of the saved ones."""
    q, _, v, *_ = tensors
    assert q is not None and v is not None
    batch, tokens, _, key = q.shape
    value_heads, value = v.shape[2:]
    out, count = (batch, tokens, value_heads, value), batch if ends is None else ends.shape[0] - 1
    return out, (count, value_heads, key, value), check_delta.saved(out, key, call.householders)


def _given(tensors: Tensors, ends: Tensor | None, call: Call) -> Any:
    """The arguments as the kernel takes them."""
    return arrays(tensors), None if ends is None else ends.numpy(force=True), *call


def forward(tensors: Tensors, ends: Tensor | None, call: Call, saving: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    """Outputs, states, and the states that backward needs."""
    (out, states, kept), lead = _shapes(tensors, ends, call), tensors[0]
    assert lead is not None
    (o, own_o), (state, own_state) = room(out, lead.dtype), room(states, lead.dtype)
    saved, own_saved = room(kept, lead.dtype) if saving else (None, None)
    _core.delta_rule(_given(tensors, ends, call), (own_o, own_state, own_saved), threads())
    return o, state, saved


def backward(
    tensors: Tensors, ends: Tensor | None, call: Call, saved: Tensor, cts: Sequence[Tensor], wanted: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """The wanted gradients."""
    grads, bars = rooms(wanted, tensors)
    _core.delta_rule_vjp(_given(tensors, ends, call), given(saved), (given(cts[0]), given(cts[1])), bars, threads())
    return grads


@torch.library.custom_op("isometry::delta_rule", mutates_args=(), device_types="cpu")
def _forward(
    tensors: Sequence[Tensor | None],
    ends: Tensor | None,
    householders: int,
    scale: float,
    normalise: bool,
    saving: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    o, state, saved = forward(tensors, ends, Call(householders, scale, normalise), saving)
    return o, state, o.new_empty(0) if saved is None else saved


@_forward.register_fake
def _(
    tensors: Tensors, ends: Tensor | None, householders: int, scale: float, normalise: bool, saving: bool
) -> tuple[Tensor, Tensor, Tensor]:
    shapes, lead = _shapes(tensors, ends, Call(householders, scale, normalise)), tensors[0]
    assert lead is not None
    out, states, kept = shapes
    return lead.new_empty(out), lead.new_empty(states), lead.new_empty(kept if saving else (0,))


@torch.library.custom_op("isometry::delta_rule_backward", mutates_args=(), device_types="cpu")
def _backward(
    tensors: Sequence[Tensor | None],
    ends: Tensor | None,
    householders: int,
    scale: float,
    normalise: bool,
    saved: Tensor,
    cts: Sequence[Tensor],
    wanted: Sequence[bool],
) -> list[Tensor]:
    return filled(backward(tensors, ends, Call(householders, scale, normalise), saved, cts, wanted))


@_backward.register_fake
def _(*arguments: Any) -> list[Tensor]:
    return fakes(arguments[0], arguments[-1])


class DeltaRule(Function):
    """Outputs and states; `wanted` is None for an eager call."""

    @staticmethod
    def forward(
        ctx: Any, call: Call, wanted: Any, ends: Tensor | None, *tensors: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if wanted is None:
            o, state, saved = forward(tensors, ends, call, True)
        else:
            o, state, saved = _forward(tensors, ends, *call, True)
        ctx.save_for_backward(saved, ends, *tensors)
        ctx.call, ctx.wanted = call, wanted
        return o, state

    @staticmethod
    def backward(ctx: Any, *cts: Tensor) -> tuple[Tensor | None, ...]:
        saved, ends, *tensors = ctx.saved_tensors
        call = ctx.call
        if ctx.wanted is not None:
            bars = _backward(tensors, ends, *call, saved, cts, ctx.wanted)
            return (None, None, None, *owned(bars, ctx.wanted))
        wanted = ctx.needs_input_grad[3:]
        if differentiated(*cts):
            return (None, None, None, *formula_vjp(lambda *t: formula(t, ends, call), tensors, wanted, cts))
        return (None, None, None, *backward(tensors, ends, call, saved, cts, wanted))


def graph(tensors: Tensors, ends: Tensor | None, call: Call) -> tuple[Tensor, Tensor]:
    """The kernel as an operation of a graph, without a gradient."""
    return _forward(tensors, ends, *call, False)[:2]


def formula(tensors: Any, ends: Tensor | None, call: Call) -> tuple[Tensor, Tensor]:
    """The same in torch operations."""
    q, k, v, beta, g, state = tensors
    return delta.delta_rule(q, k, v, beta, g, state, None if ends is None else ends.tolist(), *call)
