"""The kernel calls of operators as operations of a compiled graph.

`torch.compile` cannot look into a kernel: it sees the operators `isometry::matrix`, `isometry::apply` and those of
their gradients, and Functions that tie them together. The operators have no derivative of their own, so that nobody can
differentiate them the wrong way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad

from ... import _core
from .._function import given, place, room
from ._functions import arrays, rooms


def compiling(*tensors: Tensor | None) -> bool:
    """Whether a compiled graph is being made of these tensors, outside of a transform and of forward mode."""
    return (
        torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
        and forward_ad._current_level < 0
        and all(t is None or t.device.type == "cpu" for t in tensors)
    )


def _wanted(stem: str, arguments: Sequence[Tensor | None]) -> list[bool]:
    """Which arguments have a gradient."""
    rows = _core.OBJECTS[stem]
    trained = [row[3] for row in rows] + [rows[-1][3]] * (len(arguments) - len(rows))
    return [t is not None and own for t, own in zip(arguments, trained, strict=True)]


def _lead(stem: str, arguments: Sequence[Tensor | None]) -> Tensor:
    """The argument whose dtype is the matrix's."""
    rows = _core.OBJECTS[stem]
    lead = arguments[next((i for i, row in enumerate(rows) if not (row[2] or row[6])), 0)]
    assert lead is not None
    return lead


def _filled(grads: Sequence[Tensor | None]) -> list[Tensor]:
    # An operator returns tensors only: the gradient of an absent argument is an empty one.
    return [torch.empty(0) if t is None else t for t in grads]


def _like(arguments: Sequence[Tensor | None], stem: str) -> list[Tensor]:
    wanted = zip(arguments, _wanted(stem, arguments), strict=True)
    return [t.new_empty(t.shape) if w and t is not None else torch.empty(0) for t, w in wanted]


@torch.library.custom_op("isometry::matrix", mutates_args=(), device_types="cpu")
def _matrix(stem: str, arguments: Sequence[Tensor | None], shape: Sequence[int]) -> Tensor:
    out, w = room(tuple(shape), _lead(stem, arguments).dtype)
    _core.operator_matrix(stem, arrays(arguments), w, False, place())
    return out


@_matrix.register_fake
def _(stem: str, arguments: Sequence[Tensor | None], shape: Sequence[int]) -> Tensor:
    return _lead(stem, arguments).new_empty(shape)


@torch.library.custom_op("isometry::matrix_backward", mutates_args=(), device_types="cpu")
def _matrix_backward(stem: str, arguments: Sequence[Tensor | None], ct: Tensor) -> list[Tensor]:
    grads, bars = rooms(_wanted(stem, arguments), arguments)
    _core.operator_matrix_vjp(stem, arrays(arguments), None, given(ct), bars, place())
    return _filled(grads)


@_matrix_backward.register_fake
def _(stem: str, arguments: Sequence[Tensor | None], _ct: Tensor) -> list[Tensor]:
    return _like(arguments, stem)


@torch.library.custom_op("isometry::apply", mutates_args=(), device_types="cpu")
def _apply(stem: str, arguments: Sequence[Tensor | None], x: Tensor, features: int, adjoint: bool) -> Tensor:
    out, c = room((*x.shape[:-1], features), x.dtype)
    _core.operator_apply(stem, arrays(arguments), given(x), c, adjoint, False, place())
    return out


@_apply.register_fake
def _(_stem: str, _arguments: Sequence[Tensor | None], x: Tensor, features: int, _adjoint: bool) -> Tensor:
    return x.new_empty((*x.shape[:-1], features))


@torch.library.custom_op("isometry::apply_backward", mutates_args=(), device_types="cpu")
def _apply_backward(
    stem: str, arguments: Sequence[Tensor | None], x: Tensor, ct: Tensor, adjoint: bool
) -> list[Tensor]:
    x_bar, h_bar = room(x.shape, x.dtype)
    grads, bars = rooms(_wanted(stem, arguments), arguments)
    _core.operator_apply_vjp(stem, arrays(arguments), None, given(x), given(ct), bars, h_bar, adjoint, place())
    return [x_bar, *_filled(grads)]


@_apply_backward.register_fake
def _(stem: str, arguments: Sequence[Tensor | None], x: Tensor, _ct: Tensor, _adjoint: bool) -> list[Tensor]:
    return [x.new_empty(x.shape), *_like(arguments, stem)]


class CompiledMatrix(Function):
    """W of an object, by its stem."""

    @staticmethod
    def forward(stem: str, shape: tuple[int, ...], *arguments: Tensor | None) -> Tensor:
        return _matrix(stem, arguments, shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.stem, _, *arguments = inputs
        ctx.save_for_backward(*arguments)

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        arguments = ctx.saved_tensors
        grads = _matrix_backward(ctx.stem, arguments, ct)
        return (None, None, *_owned(ctx.stem, arguments, grads))


class CompiledApply(Function):
    """Rows W x or W^H x of an object, by its stem."""

    @staticmethod
    def forward(stem: str, adjoint: bool, features: int, x: Tensor, *arguments: Tensor | None) -> Tensor:
        return _apply(stem, arguments, x, features, adjoint)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.stem, ctx.adjoint, _, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        x, *arguments = ctx.saved_tensors
        x_bar, *grads = _apply_backward(ctx.stem, arguments, x, ct, ctx.adjoint)
        return (None, None, None, x_bar, *_owned(ctx.stem, arguments, grads))


def _owned(stem: str, arguments: Sequence[Tensor | None], grads: Sequence[Tensor]) -> list[Tensor | None]:
    """The gradients of trained arguments, None for the others."""
    return [grad if wanted else None for grad, wanted in zip(grads, _wanted(stem, arguments), strict=True)]
