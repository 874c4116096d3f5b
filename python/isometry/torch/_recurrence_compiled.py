"""The recurrence as one operation of a compiled graph.

`torch.compile` must not unroll a loop over the time steps and cannot trace a kernel: it sees the two operators
`isometry::recurrence_dense` and `isometry::recurrence_dense_backward`, and a Function that connects them. The
operators have no derivative of their own, so they cannot be differentiated incorrectly. The first chooses the backend
when it runs and tells the second, as those of `operators._compiled` do.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from .. import _core
from ._function import array, mark, marked, place, place_of, room
from ._recurrence_function import DRIVE, Setting, kernel_inputs
from .operators._functions import rooms


@torch.library.custom_op("isometry::recurrence_dense", mutates_args=(), device_types="cpu")
def _forward(
    weight: Tensor,
    x: Tensor,
    input_weight: Tensor,
    h0: Tensor | None,
    bias: Tensor | None,
    activation_bias: Tensor | None,
    activation: str,
    slope: float,
    on_input: bool,
    lengths: Tensor | None,
    reverse: bool,
    backend: str | None,
) -> tuple[Tensor, Tensor]:
    drive = x, input_weight, h0, bias, activation_bias
    setting = Setting(activation, slope, on_input, lengths, reverse, backend)
    states, h = room((x.shape[0], x.shape[1], weight.shape[0]), x.dtype)
    at = place(backend)
    _core.recurrence("dense", (array(weight),), kernel_inputs(drive, setting), h, at)
    return states, marked(at)


@_forward.register_fake
def _(weight: Tensor, x: Tensor, *_rest: Any) -> tuple[Tensor, Tensor]:
    return x.new_empty((x.shape[0], x.shape[1], weight.shape[0])), mark()


@torch.library.custom_op("isometry::recurrence_dense_backward", mutates_args=(), device_types="cpu")
def _backward(
    weight: Tensor,
    x: Tensor,
    input_weight: Tensor,
    h0: Tensor | None,
    bias: Tensor | None,
    activation_bias: Tensor | None,
    activation: str,
    slope: float,
    on_input: bool,
    lengths: Tensor | None,
    reverse: bool,
    states: Tensor,
    on_gpu: Tensor,
    ct: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    drive = x, input_weight, h0, bias, activation_bias
    setting = Setting(activation, slope, on_input, lengths, reverse, None)
    weight_bar, w_bar = room(weight.shape, weight.dtype)
    drive_bar, bars = rooms([True] * DRIVE, drive)
    given, inputs = (array(weight),), kernel_inputs(drive, setting)
    at = place_of(on_gpu)
    _core.recurrence_vjp("dense", given, inputs, array(states), array(ct), (w_bar,), bars, at)
    # An operator returns tensors only: the gradient of an absent argument is an empty one.
    return tuple(torch.empty(0) if t is None else t for t in (weight_bar, *drive_bar))  # type: ignore[return-value]


@_backward.register_fake
def _(*arguments: Any) -> tuple[Tensor, ...]:
    return tuple(torch.empty(0) if t is None else t.new_empty(t.shape) for t in arguments[:6])


class RecurrenceCompiled(Function):
    """The pair of operators; arguments in their order."""

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, Tensor]:
        return _forward(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        activation, slope, on_input, lengths, reverse, _ = inputs[1 + DRIVE :]
        ctx.save_for_backward(*inputs[: 1 + DRIVE], lengths, *output)
        ctx.mark_non_differentiable(output[1])
        ctx.setting = activation, slope, on_input, reverse

    @staticmethod
    def backward(ctx: Any, ct: Tensor, _on_gpu_ct: Tensor) -> tuple[Tensor | None, ...]:
        *given, lengths, states, on_gpu = ctx.saved_tensors
        activation, slope, on_input, reverse = ctx.setting
        bars = _backward(*given, activation, slope, on_input, lengths, reverse, states, on_gpu, ct)
        grads = [None if t is None else bar for t, bar in zip(given, bars, strict=True)]
        return (*grads, None, None, None, None, None, None)
