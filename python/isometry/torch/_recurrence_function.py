"""The differentiable kernel call of `recurrence` for a dense W, and what it shares with the factored ones.

Their arguments, after those of the transition, in this order (`DRIVE`): x (T, B, d), input_weight (n, d), h0 (B, n),
bias (n,), activation_bias (units,), then the plain values of `Setting`. Arguments and states are saved for backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor
from torch.autograd import Function

from .. import _core
from . import reference
from ._function import Array, array, derived, formula_vjp, gradient, optional, room, threads

#: The number of differentiable arguments after those of the transition.
DRIVE = 5


class Setting(NamedTuple):
    """The parameters of a recurrence that are not tensors."""

    activation: str
    slope: float
    on_input: bool
    lengths: Tensor | None
    reverse: bool


def formula(weight: Tensor, drive: Sequence[Any], setting: Setting) -> Tensor:
    """The states, by the textbook loop."""
    x, input_weight, h0, bias, activation_bias = drive
    activation, slope, on_input, lengths, reverse = setting
    return reference.recurrence(
        weight, x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse
    )


_Inputs = tuple[Array, Array, Array | None, Array | None, str, Array | None, float, bool, np.ndarray | None, bool]


def kernel_inputs(drive: Sequence[Any], setting: Setting) -> _Inputs:
    """The arguments of a kernel from x to reverse."""
    x, input_weight, h0, bias, activation_bias = drive
    lengths = None if setting.lengths is None else setting.lengths.numpy(force=True)
    return (
        array(x),
        array(input_weight),
        optional(h0),
        optional(bias),
        setting.activation,
        optional(activation_bias),
        setting.slope,
        setting.on_input,
        lengths,
        setting.reverse,
    )


_Bars = tuple[Array | None, Array | None, Array | None, Array | None, Array | None]


def room_for(wanted: Sequence[bool], drive: Sequence[Any]) -> tuple[tuple[Tensor | None, ...], _Bars]:
    """Room for the gradients of x, input_weight, h0, bias and activation_bias: tensors, and their arrays."""
    x, v, h, b, a = (gradient(w, t) for w, t in zip(wanted, drive, strict=True))
    return (x[0], v[0], h[0], b[0], a[0]), (x[1], v[1], h[1], b[1], a[1])


class RecurrenceDense(Function):
    """States (T, B, n) of h <- phi(W h + V x_t + b) for a dense W."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, *rest: Any) -> Tensor:
        drive, setting = rest[:DRIVE], rest[DRIVE]
        x = drive[0]
        states, h = room((*x.shape[:2], weight.shape[0]), x.dtype)
        _core.recurrence_dense(array(weight), kernel_inputs(drive, setting), h, threads())
        ctx.save_for_backward(weight, *drive, states)
        ctx.setting = setting
        return states

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        weight, *drive, states = ctx.saved_tensors
        setting, wanted = ctx.setting, ctx.needs_input_grad[: 1 + DRIVE]
        if derived(ct):

            def states_of(weight: Any, *drive: Any) -> Tensor:
                return formula(weight, drive, setting)

            return (*formula_vjp(states_of, (weight, *drive), wanted, ct), None)
        weight_bar, w_bar = gradient(wanted[0], weight)
        drive_bar, bars = room_for(wanted[1:], drive)
        _core.recurrence_dense_vjp(
            array(weight),
            kernel_inputs(drive, setting),
            array(states),
            array(ct),
            w_bar,
            bars,
            threads(),
        )
        return (weight_bar, *drive_bar, None)
