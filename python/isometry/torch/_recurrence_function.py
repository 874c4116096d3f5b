"""The differentiable kernel call of `recurrence`.

Tensors: x (T, B, d), input_weight (n, d), h0 (B, n), bias (n,), activation_bias (units,), `DRIVE` of them, then the
arguments of the transition. Saved are these and the states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor
from torch.autograd import Function

from .. import _core
from . import formulas
from ._function import Array, array, derived, formula_vjp, optional, place, room
from .operators._functions import Functions, arrays, rooms, trained_only

#: The number of tensors before those of the transition.
DRIVE = 5


class Setting(NamedTuple):
    """The parameters of a recurrence that are not tensors."""

    activation: str
    slope: float
    on_input: bool
    lengths: Tensor | None
    reverse: bool
    backend: str | None


def formula(weight: Tensor, drive: Sequence[Any], setting: Setting) -> Tensor:
    """The states, by the textbook loop."""
    x, input_weight, h0, bias, activation_bias = drive
    activation, slope, on_input, lengths, reverse, _ = setting
    return formulas.recurrence.states(
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


class Recurrence(Function):
    """States (T, B, n) of h <- phi(W h + V x_t + b) for an object that serves step by step, or a dense W."""

    @staticmethod
    def forward(ctx: Any, functions: Functions, setting: Setting, *tensors: Tensor | None) -> Tensor:
        drive, arguments = tensors[:DRIVE], tensors[DRIVE:]
        x, input_weight = tensors[:2]
        assert x is not None and input_weight is not None
        states, h = room((*x.shape[:2], input_weight.shape[0]), x.dtype)
        stem = functions.declaration.stem
        ctx.place = place(setting.backend)
        _core.recurrence(stem, arrays(arguments), kernel_inputs(drive, setting), h, ctx.place)
        ctx.save_for_backward(*tensors, states)
        ctx.functions, ctx.setting = functions, setting
        return states

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, states = ctx.saved_tensors
        functions, setting = ctx.functions, ctx.setting
        trained = (*(True,) * DRIVE, *(argument.trained for argument in functions.declaration.arguments))
        wanted = trained_only(ctx.needs_input_grad[2:], trained)
        if derived(ct):

            def states_of(*tensors: Any) -> Tensor:
                return formula(functions.matrix_formula(*tensors[DRIVE:]), tensors[:DRIVE], setting)

            return (None, None, *formula_vjp(states_of, tensors, wanted, ct))
        drive, arguments = tensors[:DRIVE], tensors[DRIVE:]
        grads, bars = rooms(wanted, tensors)
        given, inputs = arrays(arguments), kernel_inputs(drive, setting)
        stem, h, h_bar = functions.declaration.stem, array(states), array(ct)
        _core.recurrence_vjp(stem, given, inputs, h, h_bar, bars[DRIVE:], bars[:DRIVE], ctx.place)
        return (None, None, *grads)
