"""The differentiable kernel calls of an object, made from its declaration: its matrix, and rows W x or W^H x.

Arguments come with no batch or with one batch axis, all of one dtype and its real type. Saved are the arguments and
what the kernel's forward returns for its backward. Gradients of gradients follow the formula.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import and_
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from ... import _core
from ..._objects._declaration import Declaration
from ..._objects.dense import DENSE
from .. import formulas
from .._function import Array, derived, formula_vjp, given, place, room

# From this many numbers in the first argument on it pays to save what the gradient of a matrix would compute again.
_LARGE = 1024
# Bytes up to which a call's own array is held by the context, which costs less; torch frees a saved tensor earlier.
_KEPT = 1 << 14


class Functions(NamedTuple):
    """An object's kernel calls and its formulas."""

    declaration: Declaration
    matrix: type[Function]  # of (n_out, n_in) and backend, then the arguments
    apply: type[Function]  # of adjoint, features of the result, backend and x, then the arguments
    matrix_formula: Callable[..., Tensor]  # of the arguments
    apply_formula: Callable[..., Tensor]  # of the arguments, x and adjoint


def functions(
    declaration: Declaration, matrix: Callable[..., Tensor], apply: Callable[..., Tensor] | None = None
) -> Functions:
    """The calls of an object whose matrix has that formula; it is applied by `apply`, or through its matrix."""

    def through_matrix(*given: Any) -> Tensor:
        *arguments, x, adjoint = given
        return formulas.dense.apply(matrix(*arguments), x, adjoint)

    apply = apply or through_matrix
    return Functions(declaration, _matrix(declaration, matrix), _apply(declaration, apply), matrix, apply)


def _made(name: str, forward: Any, backward: Any, text: str) -> type[Function]:
    """A Function; its name is what users see as `grad_fn`."""
    parts = {"forward": staticmethod(forward), "backward": staticmethod(backward), "__doc__": text}
    return type(name, (Function,), parts)


def _matrix(declaration: Declaration, formula: Callable[..., Tensor]) -> type[Function]:
    stem, trained, always = declaration.stem, _trained(declaration), declaration.saves_matrix
    all_trained, rank, lead = all(trained), declaration.arguments[0].rank, declaration.lead
    kernel, pull = _core.operator_matrix, _core.operator_matrix_vjp

    def forward(ctx: Any, shape: tuple[int, int], backend: str | None, *arguments: Tensor | None) -> Tensor:
        first, own = arguments[0], arguments[lead]
        assert first is not None and own is not None
        stacked = first.dim() > rank
        out, w = room((*first.shape[: first.dim() - rank], *shape) if stacked else shape, own.dtype)
        save = (always or first.numel() >= _LARGE) and True in ctx.needs_input_grad
        ctx.place = place(backend)
        saved = kernel(stem, arrays(arguments), w, save, ctx.place)
        if saved is not None:
            saved = out if saved is w else torch.from_numpy(saved)
        ctx.save_for_backward(saved, *arguments)
        return out

    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        saved, *arguments = ctx.saved_tensors
        wanted = ctx.needs_input_grad[2:]
        if not all_trained:
            wanted = trained_only(wanted, trained)
        if derived(ct):
            return (None, None, *formula_vjp(formula, arguments, wanted, ct))
        grads, bars = rooms(wanted, arguments)
        kept = None if saved is None else given(saved)
        pull(stem, arrays(arguments), kept, given(ct), bars, ctx.place)
        return (None, None, *grads)

    return _made(f"{declaration.name}Matrix", forward, backward, f"W of `{declaration.name}`.")


def _apply(declaration: Declaration, formula: Callable[..., Tensor]) -> type[Function]:
    stem, trained = declaration.stem, (True, *_trained(declaration))
    all_trained = all(trained)
    kernel, pull = _core.operator_apply, _core.operator_apply_vjp

    def forward(
        ctx: Any, adjoint: bool, features: int, backend: str | None, x: Tensor, *arguments: Tensor | None
    ) -> Tensor:
        shape = x.shape
        out, c = room(shape if shape[-1] == features else (*shape[:-1], features), x.dtype)
        ctx.place = place(backend)
        kept = kernel(stem, arrays(arguments), given(x), c, adjoint, True in ctx.needs_input_grad, ctx.place)
        saved = None
        if kept is not None and kept.nbytes > _KEPT:
            saved, kept = torch.from_numpy(kept), None
        ctx.adjoint, ctx.kept = adjoint, kept
        ctx.save_for_backward(saved, x, *arguments)
        return out

    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        saved, x, *arguments = ctx.saved_tensors
        adjoint, wanted, kept = ctx.adjoint, ctx.needs_input_grad[3:], ctx.kept if saved is None else saved
        if not all_trained:
            wanted = trained_only(wanted, trained)
        if derived(ct):

            def of_x(x: Tensor, *arguments: Tensor) -> Tensor:
                return formula(*arguments, x, adjoint)

            return (None, None, None, *formula_vjp(of_x, (x, *arguments), wanted, ct))
        x_bar, h_bar = room(x.shape, x.dtype) if wanted[0] else (None, None)
        grads, bars = rooms(wanted[1:], arguments)
        pull(stem, arrays(arguments), kept, given(x), given(ct), bars, h_bar, adjoint, ctx.place)
        return (None, None, None, x_bar, *grads)

    return _made(f"{declaration.name}Apply", forward, backward, f"Rows W x or W^H x of `{declaration.name}`.")


def _trained(declaration: Declaration) -> tuple[bool, ...]:
    return tuple(argument.trained for argument in declaration.arguments)


def trained_only(asked: Sequence[bool], trained: tuple[bool, ...]) -> tuple[bool, ...]:
    """The gradients to compute; a list of arguments is trained like its first."""
    if len(asked) > len(trained):
        trained += trained[-1:] * (len(asked) - len(trained))
    return tuple(map(and_, asked, trained))


def arrays(tensors: Sequence[Tensor | None]) -> tuple[Array | None, ...]:
    """What a kernel takes for each, None for None."""
    return tuple([None if t is None else given(t) for t in tensors])


def rooms(
    wanted: Sequence[bool], like: Sequence[Tensor | None]
) -> tuple[tuple[Tensor | None, ...], tuple[Array | None, ...]]:
    """Room for the gradients that are wanted of tensors like these: as tensors, and as a kernel takes it."""
    grads: list[Tensor | None] = []
    bars: list[Array | None] = []
    for w, t in zip(wanted, like, strict=True):
        grad, bar = room(t.shape, t.dtype) if w and t is not None else (None, None)
        grads.append(grad)
        bars.append(bar)
    return tuple(grads), tuple(bars)


#: The calls that apply any operator through its matrix.
THROUGH_MATRIX = functions(DENSE, formulas.dense.matrix, formulas.dense.apply)
