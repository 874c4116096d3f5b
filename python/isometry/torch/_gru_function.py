"""The differentiable kernel call of `gru` and `goru`, the textbook formula, and the two operators of a compiled graph.

Tensors of all of them, in this order: x (T, B, d), w (3, n, n), u (3, n, d), b (3, n), h0 (B, n), hidden_bias (n,),
activation_bias (units,). Where W_h is an operator applied step by step w is (2, n, n), and the operator's arguments
follow. Besides the states the kernel saves z, r and c of every step for its gradient, and with reset "after"
W_h h + c_h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from .. import _core
from ._function import array, derived, formula_vjp, optional, room, threads
from .formulas._precision import full_precision
from .formulas.activation import activate
from .operators._functions import Functions, arrays, rooms, trained_only

#: The number of tensors before those of an operator.
TENSORS = 7


class Setting(NamedTuple):
    """What a GRU computes, apart from its tensors."""

    after: bool
    activation: str
    slope: float
    lengths: Tensor | None
    reverse: bool


@full_precision
def formula(
    setting: Setting,
    x: Tensor,
    w: Tensor,
    u: Tensor,
    b: Tensor | None,
    h0: Tensor | None,
    hidden_bias: Tensor | None,
    activation_bias: Tensor | None,
) -> Tensor:
    """The states by the textbook loop."""
    after, activation, slope, lengths, reverse = setting
    steps, batch = x.shape[:2]
    n = w.shape[-1]
    if lengths is not None:
        inside = torch.arange(steps, device=x.device)[:, None, None] < lengths[:, None]
        # What lies behind a sequence's end must not reach a gradient, not even as 0 * NaN.
        x = torch.where(inside, x, torch.zeros_like(x))
    drive = x @ u.flatten(0, 1).mT
    drive = drive if b is None else drive + b.flatten()
    drives = drive.unbind(0)
    gates, own = w[:2].flatten(0, 1).mT, w[2].mT
    h = drive.new_zeros((batch, n)) if h0 is None else h0
    states: list[Tensor] = []
    for t in reversed(range(steps)) if reverse else range(steps):
        from_x, into_c = drives[t].split((2 * n, n), -1)
        z, r = torch.sigmoid(h @ gates + from_x).split(n, -1)
        if after:
            product = h @ own
            product = r * (product if hidden_bias is None else product + hidden_bias)
        else:
            product = (r * h) @ own
        c = activate(product + into_c, activation, activation_bias, slope)
        new = z * h + (1 - z) * c
        if lengths is None:
            h = new
            states.append(h)
        else:
            h = torch.where(inside[t], new, h)
            states.append(torch.where(inside[t], new, torch.zeros_like(new)))
    return torch.stack(states[::-1] if reverse else states)


def _given(tensors: Sequence[Any], setting: Setting) -> Any:
    """The arguments of the kernels."""
    x, w, u, b, h0, hidden_bias, activation_bias = tensors[:TENSORS]
    return (
        array(x),
        array(w),
        array(u),
        optional(b),
        optional(h0),
        optional(hidden_bias),
        setting.after,
        setting.activation,
        optional(activation_bias),
        setting.slope,
        None if setting.lengths is None else setting.lengths.numpy(force=True),
        setting.reverse,
    )


def _transition(functions: Functions | None, tensors: Sequence[Any]) -> Any:
    """W_h as the kernels take it, where it is no part of w."""
    return None if functions is None else (functions.declaration.stem, arrays(tensors[TENSORS:]))


def _forward(
    tensors: Sequence[Any], setting: Setting, saving: bool, functions: Functions | None = None
) -> tuple[Tensor, Tensor | None]:
    """The states, and what the gradient reads besides them."""
    x, w = tensors[:2]
    shape = (*x.shape[:2], w.shape[-1])
    states, h = room(shape, x.dtype)
    saved, s = room((3 + setting.after, *shape), x.dtype) if saving else (None, None)
    _core.gru(_given(tensors, setting), _transition(functions, tensors), h, s, threads())
    return states, saved


def _backward(
    tensors: Sequence[Any],
    setting: Setting,
    results: tuple[Tensor, Tensor, Tensor],
    wanted: Sequence[bool],
    functions: Functions | None = None,
) -> tuple[Tensor | None, ...]:
    """The gradients that are wanted, from the states, what was saved with them, and their cotangents."""
    grads, bars = rooms(wanted, tensors)
    x, w, u, b, h0, hidden_bias, activation_bias = bars[:TENSORS]
    own = (x, w, u, b, h0, hidden_bias, activation_bias)
    states, saved, ct = (array(t) for t in results)
    given, transition = _given(tensors, setting), _transition(functions, tensors)
    _core.gru_vjp(given, transition, states, saved, ct, own, bars[TENSORS:], threads())
    return grads


class Gru(Function):
    """States (T, B, n) for W_h the third of w, or an operator that serves step by step."""

    @staticmethod
    def forward(ctx: Any, functions: Functions | None, setting: Setting, *tensors: Tensor | None) -> Tensor:
        states, saved = _forward(tensors, setting, any(ctx.needs_input_grad), functions)
        ctx.save_for_backward(*tensors, states, saved)
        ctx.functions, ctx.setting = functions, setting
        return states

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, states, saved = ctx.saved_tensors
        functions, setting, wanted = ctx.functions, ctx.setting, ctx.needs_input_grad[2:]
        if functions is not None:
            own = (argument.trained for argument in functions.declaration.arguments)
            wanted = trained_only(wanted, (*(True,) * TENSORS, *own))
        if derived(ct):

            def states_of(*tensors: Any) -> Tensor:
                x, w, *rest = tensors[:TENSORS]
                if functions is not None:
                    w = with_transition(w, functions.matrix_formula(*tensors[TENSORS:]))
                return formula(setting, x, w, *rest)

            return (None, None, *formula_vjp(states_of, tensors, wanted, ct))
        return (None, None, *_backward(tensors, setting, (states, saved, ct), wanted, functions))


def with_transition(w: Tensor, own: Tensor) -> Tensor:
    """W_z, W_r and W_h as one tensor."""
    return torch.cat((w, own[None]))


# ---------------------------------------------------------------- one operation of a compiled graph


@torch.library.custom_op("isometry::gru", mutates_args=(), device_types="cpu")
def _operator(
    x: Tensor,
    w: Tensor,
    u: Tensor,
    b: Tensor | None,
    h0: Tensor | None,
    hidden_bias: Tensor | None,
    activation_bias: Tensor | None,
    after: bool,
    activation: str,
    slope: float,
    lengths: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, Tensor]:
    tensors = x, w, u, b, h0, hidden_bias, activation_bias
    states, saved = _forward(tensors, Setting(after, activation, slope, lengths, reverse), True)
    assert saved is not None
    return states, saved


@_operator.register_fake
def _(x: Tensor, w: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    shape = (x.shape[0], x.shape[1], w.shape[-1])
    return x.new_empty(shape), x.new_empty((3 + rest[5], *shape))


@torch.library.custom_op("isometry::gru_backward", mutates_args=(), device_types="cpu")
def _operator_backward(
    x: Tensor,
    w: Tensor,
    u: Tensor,
    b: Tensor | None,
    h0: Tensor | None,
    hidden_bias: Tensor | None,
    activation_bias: Tensor | None,
    after: bool,
    activation: str,
    slope: float,
    lengths: Tensor | None,
    reverse: bool,
    states: Tensor,
    saved: Tensor,
    ct: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    tensors = x, w, u, b, h0, hidden_bias, activation_bias
    setting = Setting(after, activation, slope, lengths, reverse)
    bars = _backward(tensors, setting, (states, saved, ct), [True] * TENSORS)
    # An operator returns tensors only: the gradient of an absent argument is an empty one.
    return tuple(torch.empty(0) if t is None else t for t in bars)  # type: ignore[return-value]


@_operator_backward.register_fake
def _(*arguments: Any) -> tuple[Tensor, ...]:
    return tuple(torch.empty(0) if t is None else t.new_empty(t.shape) for t in arguments[:TENSORS])


class GruCompiled(Function):
    """The pair above; arguments in the operators' order."""

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, Tensor]:
        return _operator(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *plain, lengths, reverse = inputs[TENSORS:]
        ctx.save_for_backward(*inputs[:TENSORS], lengths, *output)
        ctx.mark_non_differentiable(output[1])
        ctx.setting = plain, reverse

    @staticmethod
    def backward(ctx: Any, ct: Tensor, _saved_ct: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, lengths, states, saved = ctx.saved_tensors
        plain, reverse = ctx.setting
        bars = _operator_backward(*tensors, *plain, lengths, reverse, states, saved, ct)
        grads = [None if t is None else bar for t, bar in zip(tensors, bars, strict=True)]
        return (*grads, None, None, None, None, None)
