"""The differentiable kernel call of `recurrence` that applies the reflections at each step.

For n much larger than m this costs less than a step with the matrix; `recurrence_plan` of the core decides.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function

from ... import _core
from .. import formulas
from .._function import array, derived, formula_vjp, gradient, optional, room, threads
from .._recurrence_function import DRIVE, formula, kernel_inputs, room_for


class HouseholderRecurrence(Function):
    """States (T, B, n) of h <- phi(W h + V x_t + b) for W = H(u_0) ... H(u_{m-1}) E, applied factor by factor."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, sign: Tensor | None, phases: Tensor | None, *rest: Any) -> Tensor:
        drive, setting = rest[:DRIVE], rest[DRIVE]
        x = drive[0]
        states, h = room((*x.shape[:2], vectors.shape[0]), x.dtype)
        _core.recurrence_reflections(
            array(vectors), optional(sign, 1), optional(phases), kernel_inputs(drive, setting), h, threads()
        )
        ctx.save_for_backward(vectors, sign, phases, *drive, states)
        ctx.setting = setting
        return states

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        vectors, sign, phases, *drive, states = ctx.saved_tensors
        setting, wanted = ctx.setting, ctx.needs_input_grad[: 3 + DRIVE]
        if derived(ct):

            def states_of(vectors: Any, sign: Any, phases: Any, *drive: Any) -> Tensor:
                return formula(formulas.householder.matrix(vectors, sign, phases), drive, setting)

            return (*formula_vjp(states_of, (vectors, sign, phases, *drive), wanted, ct), None)
        vectors_bar, u_bar = gradient(wanted[0], vectors)
        sign_bar, s_bar = gradient(wanted[1], sign, 1)
        phases_bar, p_bar = gradient(wanted[2], phases)
        drive_bar, bars = room_for(wanted[3:], drive)
        _core.recurrence_reflections_vjp(
            array(vectors),
            optional(sign, 1),
            optional(phases),
            kernel_inputs(drive, setting),
            array(states),
            array(ct),
            u_bar,
            s_bar,
            p_bar,
            bars,
            threads(),
        )
        return (vectors_bar, sign_bar, phases_bar, *drive_bar, None)
