"""The two differentiable kernel calls of `Householder`: matrix and apply.

Arguments have no batch axis, vectors (n, m), or one, (nb, n, m); all of one dtype. Saved for backward are the
arguments and, if it pays, intermediate results: of a large matrix T^-1 and T^-1 U^H E, about a fifth of the
gradient's work; of W x T^-1 and the input of each block of reflections, if there are few blocks.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function

from ... import _core
from .. import reference
from .._function import array, derived, formula_vjp, gradient, optional, room, threads

# From this many numbers on it pays to save intermediate results for backward.
_LARGE = 1024


def _arrays(vectors: Tensor, sign: Tensor | None, phases: Tensor | None) -> tuple[Any, Any, Any, int, int, int]:
    n, m = vectors.shape[-2:]
    nb = vectors.shape[0] if vectors.dim() == 3 else 1
    return array(vectors, nb, n, m), optional(sign, nb), optional(phases, nb, n), nb, n, m


class HouseholderMatrix(Function):
    """W = H(u_0) ... H(u_{m-1}) E."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, sign: Tensor | None, phases: Tensor | None) -> Tensor:
        u, s, p, nb, n, m = _arrays(vectors, sign, phases)
        out, w = room((*vectors.shape[:-2], n, n), vectors.dtype, nb, n, n)
        large = n * m >= _LARGE and ctx.needs_input_grad[0]
        kept, k = room((nb, m * (m + n)), vectors.dtype, nb, -1) if large else (None, None)
        _core.householder_matrix(u, s, p, w, k, threads())
        ctx.save_for_backward(vectors, sign, phases, kept)
        return out

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        vectors, sign, phases, kept = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        if derived(ct):
            return tuple(formula_vjp(reference.householder_matrix, (vectors, sign, phases), wanted, ct))
        u, s, p, nb, n, m = _arrays(vectors, sign, phases)
        vectors_bar, u_bar = room(vectors.shape, vectors.dtype, nb, n, m)
        sign_bar, s_bar = gradient(wanted[1], sign, nb)
        phases_bar, p_bar = gradient(wanted[2], phases, nb, n)
        _core.householder_matrix_vjp(
            u, s, p, optional(kept, nb, -1), array(ct, nb, n, n), u_bar, s_bar, p_bar, threads()
        )
        return vectors_bar, sign_bar, phases_bar


class HouseholderApply(Function):
    """Rows W x or W^H x; x (..., n) without a batch, (nb, k, n) with one."""

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, sign: Tensor | None, phases: Tensor | None, x: Tensor, adjoint: bool
    ) -> Tensor:
        ctx.adjoint = adjoint
        u, s, p, nb, n, m = _arrays(vectors, sign, phases)
        h = array(x, nb, -1, n)
        out, c = room(x.shape, x.dtype, nb, -1, n)
        size = 0
        if not adjoint and (ctx.needs_input_grad[0] or ctx.needs_input_grad[3]):
            rows = x.numel() // (nb * n)
            size = _core.householder_apply_kept(n, m, rows, s is not None or p is not None)
        kept, k = room((nb, size), x.dtype) if size else (None, None)
        _core.householder_apply(u, s, p, h, c, k, adjoint, threads())
        ctx.save_for_backward(vectors, sign, phases, x, kept)
        return out

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        vectors, sign, phases, x, kept = ctx.saved_tensors
        adjoint, wanted = ctx.adjoint, ctx.needs_input_grad[:4]
        if derived(ct):

            def formula(vectors: Any, sign: Any, phases: Any, x: Any) -> Tensor:
                return reference.householder_apply(vectors, sign, phases, x, adjoint)

            return (*formula_vjp(formula, (vectors, sign, phases, x), wanted, ct), None)
        u, s, p, nb, n, m = _arrays(vectors, sign, phases)
        vectors_bar, u_bar = gradient(wanted[0], vectors, nb, n, m)
        sign_bar, s_bar = gradient(wanted[1], sign, nb)
        phases_bar, p_bar = gradient(wanted[2], phases, nb, n)
        x_bar, h_bar = gradient(wanted[3], x, nb, -1, n)
        h, c_bar = array(x, nb, -1, n), array(ct, nb, -1, n)
        k = optional(kept)
        _core.householder_apply_vjp(u, s, p, k, h, c_bar, u_bar, s_bar, p_bar, h_bar, adjoint, threads())
        return vectors_bar, sign_bar, phases_bar, x_bar, None
