"""The differentiable kernel call of `Cayley`: its matrix.

Arguments have no batch axis, upper (n (n - 1) / 2,), or one; upper is real or complex, the others real. Saved for
backward are the arguments and W, which gives 2 S = W D^H + I.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function

from ... import _core
from .. import reference
from .._function import array, derived, formula_vjp, gradient, optional, room, threads


class CayleyMatrix(Function):
    """W = (I + A)^{-1} (I - A) D."""

    @staticmethod
    def forward(
        ctx: Any, upper: Tensor, diagonal: Tensor | None, signs: Tensor | None, phases: Tensor | None, n: int
    ) -> Tensor:
        batch = upper.shape[:-1]
        nb = batch[0] if batch else 1
        out, w = room((*batch, n, n), upper.dtype, nb, n, n)
        _core.cayley_matrix(
            array(upper, nb, n * (n - 1) // 2),
            optional(diagonal, nb, n),
            optional(signs, nb, n),
            optional(phases, nb, n),
            w,
            threads(),
        )
        ctx.save_for_backward(upper, diagonal, signs, phases, out)
        return out

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        upper, diagonal, signs, phases, w = ctx.saved_tensors
        n, wanted = w.shape[-1], ctx.needs_input_grad
        wanted = wanted[0], wanted[1], False, wanted[3]
        if derived(ct):

            def formula(upper: Any, diagonal: Any, signs: Any, phases: Any) -> Tensor:
                return reference.cayley_matrix(upper, diagonal, signs, phases, n)

            return (*formula_vjp(formula, (upper, diagonal, signs, phases), wanted, ct), None)
        nb = w.shape[0] if w.dim() == 3 else 1
        upper_bar, a_bar = gradient(wanted[0], upper, nb, n * (n - 1) // 2)
        diagonal_bar, g_bar = gradient(wanted[1], diagonal, nb, n)
        phases_bar, p_bar = gradient(wanted[3], phases, nb, n)
        s, p = optional(signs, nb, n), optional(phases, nb, n)
        _core.cayley_matrix_vjp(array(w, nb, n, n), s, p, array(ct, nb, n, n), a_bar, g_bar, p_bar, threads())
        return upper_bar, diagonal_bar, None, phases_bar, None
