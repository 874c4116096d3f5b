"""The differentiable kernel call of `rum`, and the two operators of a compiled graph.

Tensors of both, in the order of `formulas.rum`. Besides the states the kernel saves u, tau, e and k of every step for
its gradient, but no matrix of a memory: backward, each rotation is undone from the last memory on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from .. import _core
from ._function import array, derived, formula_vjp, gradient, optional, room, threads
from .formulas.rum import Setting, states

#: The number of tensors.
TENSORS = 7


def _given(tensors: Sequence[Any], setting: Setting) -> Any:
    """The arguments of the kernels."""
    x, w, u, b, h0, r0, activation_bias = tensors
    return (
        (array(x), array(w), array(u), optional(b), optional(h0), optional(r0)),
        setting.memory,
        setting.eta,
        setting.activation,
        optional(activation_bias),
        setting.slope,
        None if setting.lengths is None else setting.lengths.numpy(force=True),
        setting.reverse,
    )


def _forward(tensors: Sequence[Any], setting: Setting, saving: bool) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The states, the memory after them, and what the gradient reads besides them."""
    x, w = tensors[:2]
    n = w.shape[-1]
    shape = (*x.shape[:2], n)
    found, h = room(shape, x.dtype)
    last, r = room((shape[1], n, n), x.dtype) if setting.memory else (None, None)
    saved, s = room((4, *shape), x.dtype) if saving else (None, None)
    _core.rum(_given(tensors, setting), (h, r, s), threads())
    return found, last, saved


def _backward(
    tensors: Sequence[Any],
    setting: Setting,
    outcome: tuple[Tensor, Tensor | None, Tensor],
    cts: tuple[Tensor, Tensor | None],
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """The gradients that are wanted."""
    rooms = [gradient(w, t) for w, t in zip(wanted, tensors, strict=True)]
    x, w, u, b, h0, r0, activation_bias = (a for _, a in rooms)
    bars = (x, w, u, b, h0, r0, activation_bias)
    found, last, saved = outcome
    given = (array(found), optional(last), array(saved))
    _core.rum_vjp(_given(tensors, setting), given, (array(cts[0]), optional(cts[1])), bars, threads())
    return [t for t, _ in rooms]


class Rum(Function):
    """States (T, B, n), and the last memory (B, n, n) or None."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor | None]:
        tensors, setting = arguments[:TENSORS], arguments[TENSORS]
        found, last, saved = _forward(tensors, setting, any(ctx.needs_input_grad))
        ctx.save_for_backward(*tensors, found, last, saved)
        ctx.setting = setting
        return found, last

    @staticmethod
    def backward(ctx: Any, ct: Tensor, last_ct: Tensor | None) -> tuple[Tensor | None, ...]:
        *tensors, found, last, saved = ctx.saved_tensors
        setting, wanted = ctx.setting, ctx.needs_input_grad[:TENSORS]
        cts = (ct,) if last_ct is None else (ct, last_ct)
        if any(derived(t) for t in cts):

            def both(*tensors: Any) -> tuple[Tensor, ...]:
                return states(setting, *tensors)

            return (*formula_vjp(both, tensors, wanted, cts), None)
        return (*_backward(tensors, setting, (found, last, saved), (ct, last_ct), wanted), None)


# ---------------------------------------------------------------- one operation of a compiled graph


@torch.library.custom_op("isometry::rum", mutates_args=(), device_types="cpu")
def _operator(
    x: Tensor,
    w: Tensor,
    u: Tensor,
    b: Tensor | None,
    h0: Tensor | None,
    r0: Tensor | None,
    activation_bias: Tensor | None,
    memory: bool,
    eta: float | None,
    activation: str,
    slope: float,
    lengths: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    tensors = x, w, u, b, h0, r0, activation_bias
    found, last, saved = _forward(tensors, Setting(memory, eta, activation, slope, lengths, reverse), True)
    assert saved is not None
    # An operator returns tensors only.
    return found, x.new_empty(0) if last is None else last, saved


@_operator.register_fake
def _(x: Tensor, w: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    n = w.shape[-1]
    shape, memory = (x.shape[0], x.shape[1], n), rest[5]
    last = x.new_empty((shape[1], n, n) if memory else (0,))
    return x.new_empty(shape), last, x.new_empty((4, *shape))


@torch.library.custom_op("isometry::rum_backward", mutates_args=(), device_types="cpu")
def _operator_backward(
    x: Tensor,
    w: Tensor,
    u: Tensor,
    b: Tensor | None,
    h0: Tensor | None,
    r0: Tensor | None,
    activation_bias: Tensor | None,
    memory: bool,
    eta: float | None,
    activation: str,
    slope: float,
    lengths: Tensor | None,
    reverse: bool,
    found: Tensor,
    last: Tensor,
    saved: Tensor,
    ct: Tensor,
    last_ct: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    tensors = x, w, u, b, h0, r0, activation_bias
    setting = Setting(memory, eta, activation, slope, lengths, reverse)
    outcome, cts = ((found, last, saved), (ct, last_ct)) if memory else ((found, None, saved), (ct, None))
    bars = _backward(tensors, setting, outcome, cts, [True] * TENSORS)
    # The gradient of an absent argument is an empty tensor.
    return tuple(torch.empty(0) if t is None else t for t in bars)  # type: ignore[return-value]


@_operator_backward.register_fake
def _(*arguments: Any) -> tuple[Tensor, ...]:
    return tuple(torch.empty(0) if t is None else t.new_empty(t.shape) for t in arguments[:TENSORS])


class RumCompiled(Function):
    """The pair above; arguments in the operators' order."""

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
        return _operator(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
        *plain, lengths, reverse = inputs[TENSORS:]
        ctx.save_for_backward(*inputs[:TENSORS], lengths, *output)
        ctx.mark_non_differentiable(output[2])
        ctx.setting = plain, reverse

    @staticmethod
    def backward(ctx: Any, ct: Tensor, last_ct: Tensor, _saved_ct: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, lengths, found, last, saved = ctx.saved_tensors
        plain, reverse = ctx.setting
        bars = _operator_backward(*tensors, *plain, lengths, reverse, found, last, saved, ct, last_ct)
        grads = [None if t is None else bar for t, bar in zip(tensors, bars, strict=True)]
        return (*grads, None, None, None, None, None, None)
