"""The kernel calls of operators as operations of a compiled graph.

`torch.compile` cannot look into a kernel: it sees the operators `isometry::matrix`, `isometry::apply` and those of
their gradients, and Functions that tie them together. The operators have no derivative of their own, so that nobody can
differentiate them the wrong way.

They choose the backend when they run, so that one graph serves on each, and tell their gradients which one it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad

from ... import _core
from .._function import given, mark, marked, place, place_of, room
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
    trained = [row.trained for row in rows] + [rows[-1].trained] * (len(arguments) - len(rows))
    return [t is not None and own for t, own in zip(arguments, trained, strict=True)]


def _lead(stem: str, arguments: Sequence[Tensor | None]) -> Tensor:
    """The argument whose dtype is the matrix's."""
    rows = _core.OBJECTS[stem]
    lead = arguments[next((i for i, row in enumerate(rows) if row.kind in ("matrix", "complex", "shape")), 0)]
    assert lead is not None
    return lead


def _filled(grads: Sequence[Tensor | None]) -> list[Tensor]:
    # An operator returns tensors only: the gradient of an absent argument is an empty one.
    return [torch.empty(0) if t is None else t for t in grads]


def _like(arguments: Sequence[Tensor | None], stem: str) -> list[Tensor]:
    wanted = zip(arguments, _wanted(stem, arguments), strict=True)
    return [t.new_empty(t.shape) if w and t is not None else torch.empty(0) for t, w in wanted]


@torch.library.custom_op("isometry::matrix", mutates_args=(), device_types="cpu")
def _matrix(
    stem: str, arguments: Sequence[Tensor | None], shape: Sequence[int], backend: str | None
) -> tuple[Tensor, Tensor]:
    out, w = room(tuple(shape), _lead(stem, arguments).dtype)
    at = place(backend)
    _core.operator_matrix(stem, arrays(arguments), w, False, at)
    return out, marked(at)


@_matrix.register_fake
def _(
    stem: str, arguments: Sequence[Tensor | None], shape: Sequence[int], _backend: str | None
) -> tuple[Tensor, Tensor]:
    return _lead(stem, arguments).new_empty(shape), mark()


@torch.library.custom_op("isometry::matrix_backward", mutates_args=(), device_types="cpu")
def _matrix_backward(stem: str, arguments: Sequence[Tensor | None], ct: Tensor, on_gpu: Tensor) -> list[Tensor]:
    grads, bars = rooms(_wanted(stem, arguments), arguments)
    _core.operator_matrix_vjp(stem, arrays(arguments), None, given(ct), bars, place_of(on_gpu))
    return _filled(grads)


@_matrix_backward.register_fake
def _(stem: str, arguments: Sequence[Tensor | None], _ct: Tensor, _on_gpu: Tensor) -> list[Tensor]:
    return _like(arguments, stem)


@torch.library.custom_op("isometry::apply", mutates_args=(), device_types="cpu")
def _apply(
    stem: str, arguments: Sequence[Tensor | None], x: Tensor, features: int, adjoint: bool, backend: str | None
) -> tuple[Tensor, Tensor]:
    out, c = room((*x.shape[:-1], features), x.dtype)
    at = place(backend)
    _core.operator_apply(stem, arrays(arguments), given(x), c, adjoint, False, at)
    return out, marked(at)


@_apply.register_fake
def _(
    _stem: str, _arguments: Sequence[Tensor | None], x: Tensor, features: int, _adjoint: bool, _backend: str | None
) -> tuple[Tensor, Tensor]:
    return x.new_empty((*x.shape[:-1], features)), mark()


@torch.library.custom_op("isometry::apply_backward", mutates_args=(), device_types="cpu")
def _apply_backward(
    stem: str, arguments: Sequence[Tensor | None], x: Tensor, ct: Tensor, adjoint: bool, on_gpu: Tensor
) -> list[Tensor]:
    x_bar, h_bar = room(x.shape, x.dtype)
    grads, bars = rooms(_wanted(stem, arguments), arguments)
    at = place_of(on_gpu)
    _core.operator_apply_vjp(stem, arrays(arguments), None, given(x), given(ct), bars, h_bar, adjoint, at)
    return [x_bar, *_filled(grads)]


@_apply_backward.register_fake
def _(
    stem: str, arguments: Sequence[Tensor | None], x: Tensor, _ct: Tensor, _adjoint: bool, _on_gpu: Tensor
) -> list[Tensor]:
    return [x.new_empty(x.shape), *_like(arguments, stem)]


class CompiledMatrix(Function):
    """W of an object, by its stem, and whether the GPU formed it."""

    @staticmethod
    def forward(
        stem: str, shape: tuple[int, ...], backend: str | None, *arguments: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        return _matrix(stem, arguments, shape, backend)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.stem, _, _, *arguments = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1], *arguments)

    @staticmethod
    def backward(ctx: Any, ct: Tensor, _on_gpu_ct: Tensor) -> tuple[Tensor | None, ...]:
        on_gpu, *arguments = ctx.saved_tensors
        grads = _matrix_backward(ctx.stem, arguments, ct, on_gpu)
        return (None, None, None, *_owned(ctx.stem, arguments, grads))


class CompiledApply(Function):
    """Rows W x or W^H x of an object, by its stem, and whether the GPU computed them."""

    @staticmethod
    def forward(
        stem: str, adjoint: bool, features: int, backend: str | None, x: Tensor, *arguments: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        return _apply(stem, arguments, x, features, adjoint, backend)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.stem, ctx.adjoint, _, _, *tensors = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1], *tensors)

    @staticmethod
    def backward(ctx: Any, ct: Tensor, _on_gpu_ct: Tensor) -> tuple[Tensor | None, ...]:
        on_gpu, x, *arguments = ctx.saved_tensors
        x_bar, *grads = _apply_backward(ctx.stem, arguments, x, ct, ctx.adjoint, on_gpu)
        return (None, None, None, None, x_bar, *_owned(ctx.stem, arguments, grads))


def _owned(stem: str, arguments: Sequence[Tensor | None], grads: Sequence[Tensor]) -> list[Tensor | None]:
    """The gradients of trained arguments, None for the others."""
    return [grad if wanted else None for grad, wanted in zip(grads, _wanted(stem, arguments), strict=True)]
