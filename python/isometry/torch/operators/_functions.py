"""The kernel calls of an object, made from its declaration: its matrix, and rows W x or W^H x.

Arguments come with no batch or with one batch axis, all of one dtype and its real type. Where gradients are recorded,
the arguments and what the kernel's forward returns for backward are saved. Gradients of gradients follow the formula.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from ... import _core
from ..._objects._declaration import Declaration
from ..._objects.dense import DENSE
from .. import formulas
from .._function import Array, arrays, formula_vjp, given, place, room, rooms, trained_only
from .._mode import RECORDED, TRANSFORMED, Mode, differentiated
from .._transforms import computed
from . import _plans
from ._types import type_of

# From this many numbers in the first argument on, saving for backward is cheaper than recomputing.
_LARGE = 1024
# Up to this many bytes the context holds a call's own array, which costs less; torch frees a saved tensor earlier.
_KEPT = 1 << 14


class Functions(NamedTuple):
    """An object's kernel calls and its formulas."""

    declaration: Declaration
    matrix: Callable[..., Tensor]  # of KERNEL, RECORDED or TRANSFORMED, (n_out, n_in) and backend, then the arguments
    apply: Callable[..., Tensor]  # of the same, adjoint, features of the result, backend, x and the arguments
    matrix_formula: Callable[..., Tensor]  # of the arguments
    apply_formula: Callable[..., Tensor]  # of the arguments, x and adjoint
    trained: tuple[bool, ...]  # which arguments have a gradient


#: The calls of every object by its stem, which names it in a graph.
BY_STEM: dict[str, Functions] = {}


def functions(
    declaration: Declaration, matrix: Callable[..., Tensor], apply: Callable[..., Tensor] | None = None
) -> Functions:
    """The calls of an object whose matrix has that formula; it is applied by `apply`, or through its matrix."""

    def through_matrix(*given: Any) -> Tensor:
        *arguments, x, adjoint = given
        return formulas.dense.apply(matrix(*arguments), x, adjoint)

    apply = apply or through_matrix
    made = Functions(
        declaration, _matrix(declaration, matrix), _apply(declaration, apply), matrix, apply, _trained(declaration)
    )
    BY_STEM.setdefault(declaration.stem, made)
    return made


def _made(name: str, forward: Any, backward: Any, text: str) -> type[Function]:
    """A Function; its name is what users see as `grad_fn`."""
    parts = {"forward": staticmethod(forward), "backward": staticmethod(backward), "__doc__": text}
    return type(name, (Function,), parts)


def _matrix(declaration: Declaration, formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    stem, trained, always = declaration.stem, _trained(declaration), declaration.saves_matrix
    all_trained, rank = all(trained), declaration.arguments[0].rank
    lead, turns = declaration.lead, declaration.turns
    kernel, pull = _core.operator_matrix, _core.operator_matrix_vjp

    def space(shape: tuple[int, int], arguments: Sequence[Tensor | None]) -> tuple[Tensor, Array]:
        first, own = arguments[0], arguments[lead]
        assert first is not None and own is not None
        dtype = type_of(declaration, arguments) if turns else own.dtype  # the common case, counted in microseconds
        stacked = first.dim() > rank
        return room((*first.shape[: first.dim() - rank], *shape) if stacked else shape, dtype)

    def forward(ctx: Any, shape: tuple[int, int], backend: str | None, *arguments: Tensor | None) -> Tensor:
        out, w = space(shape, arguments)
        ctx.place = place(backend)
        save = always or arguments[0].numel() >= _LARGE  # type: ignore[union-attr]
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
        if differentiated(ct):
            return (None, None, *formula_vjp(formula, arguments, wanted, ct))
        grads, bars = rooms(wanted, arguments)
        kept = None if saved is None else given(saved)
        pull(stem, arrays(arguments), kept, given(ct), bars, ctx.place)
        return (None, None, *grads)

    recorded = _made(f"{declaration.name}Matrix", forward, backward, f"W of `{declaration.name}`.").apply

    def call(how: Mode, shape: tuple[int, int], backend: str | None, *arguments: Tensor | None) -> Tensor:
        if how is RECORDED:
            return recorded(shape, backend, *arguments)  # type: ignore[no-any-return]
        if how is TRANSFORMED:
            return computed(_plans.Matrix(shape, declaration, formula, backend, arguments), *arguments)[0]
        out, w = space(shape, arguments)
        kernel(stem, arrays(arguments), w, False, place(backend))
        return out

    return call


def _apply(declaration: Declaration, formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    stem, trained = declaration.stem, (True, *_trained(declaration))
    all_trained = all(trained)
    kernel, pull = _core.operator_apply, _core.operator_apply_vjp

    def forward(
        ctx: Any, adjoint: bool, features: int, backend: str | None, x: Tensor, *arguments: Tensor | None
    ) -> Tensor:
        shape, saved = x.shape, None
        out, c = room(shape if shape[-1] == features else (*shape[:-1], features), x.dtype)
        ctx.place = place(backend)
        kept = kernel(stem, arrays(arguments), given(x), c, adjoint, True, ctx.place)
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
        if differentiated(ct):

            def of_x(x: Tensor, *arguments: Tensor) -> Tensor:
                return formula(*arguments, x, adjoint)

            return (None, None, None, *formula_vjp(of_x, (x, *arguments), wanted, ct))
        (x_bar, *grads), (h_bar, *bars) = rooms(wanted, (x, *arguments))
        pull(stem, arrays(arguments), kept, given(x), given(ct), tuple(bars), h_bar, adjoint, ctx.place)
        return (None, None, None, x_bar, *grads)

    recorded = _made(f"{declaration.name}Apply", forward, backward, f"Rows W x or W^H x of `{declaration.name}`.").apply

    def call(
        how: Mode, adjoint: bool, features: int, backend: str | None, x: Tensor, *arguments: Tensor | None
    ) -> Tensor:
        if how is RECORDED:
            return recorded(adjoint, features, backend, x, *arguments)  # type: ignore[no-any-return]
        if how is TRANSFORMED:
            plan = _plans.Apply(adjoint, features, declaration, formula, backend, arguments)
            return computed(plan, x, *arguments)[0]
        out, c = room((*x.shape[:-1], features), x.dtype)
        kernel(stem, arrays(arguments), given(x), c, adjoint, False, place(backend))
        return out

    return call


def _trained(declaration: Declaration) -> tuple[bool, ...]:
    return tuple([argument.trained for argument in declaration.arguments])


def trained(stem: str, asked: Sequence[bool]) -> tuple[bool, ...]:
    """The gradients to compute, of those requested for the arguments of an object."""
    return trained_only(asked, BY_STEM[stem].trained) if asked else ()


#: The calls that apply any operator through its matrix.
THROUGH_MATRIX = functions(DENSE, formulas.dense.matrix, formulas.dense.apply)
