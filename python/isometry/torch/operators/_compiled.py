"""The kernel calls of operators as operations of a compiled graph.

`torch.compile` cannot trace a kernel: it sees the operators `isometry::matrix`, `isometry::apply` and those of their
gradients, and Functions that connect them. The operators have no derivative of their own, so they cannot be
differentiated incorrectly. Only gradients that are recorded are computed.

The backend is chosen when they run, so that one graph serves both, and is passed on to their gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from ... import _core
from .._function import (
    arrays,
    distinct,
    fakes,
    filled,
    given,
    mark,
    marked,
    place,
    place_of,
    room,
    rooms,
)
from .._mode import wanted
from ._functions import BY_STEM, trained
from ._types import type_of

Tensors = Sequence[Tensor | None]


@torch.library.custom_op("isometry::matrix", mutates_args=(), device_types="cpu")
def _matrix(stem: str, arguments: Tensors, shape: Sequence[int], backend: str | None) -> tuple[Tensor, Tensor]:
    out, w = room(tuple(shape), type_of(BY_STEM[stem].declaration, arguments))
    at = place(backend)
    _core.operator_matrix(stem, arrays(arguments), w, False, at)
    return out, marked(at)


@_matrix.register_fake
def _(stem: str, arguments: Tensors, shape: Sequence[int], _backend: str | None) -> tuple[Tensor, Tensor]:
    first = arguments[0]
    assert first is not None
    return first.new_empty(shape, dtype=type_of(BY_STEM[stem].declaration, arguments)), mark()


@torch.library.custom_op("isometry::matrix_backward", mutates_args=(), device_types="cpu")
def _matrix_backward(stem: str, arguments: Tensors, ct: Tensor, on_gpu: Tensor, wanted: Sequence[bool]) -> list[Tensor]:
    grads, bars = rooms(wanted, arguments)
    _core.operator_matrix_vjp(stem, arrays(arguments), None, given(ct), bars, place_of(on_gpu))
    return filled(grads)


@_matrix_backward.register_fake
def _(_stem: str, arguments: Tensors, _ct: Tensor, _on_gpu: Tensor, wanted: Sequence[bool]) -> list[Tensor]:
    return fakes(arguments, wanted)


@torch.library.custom_op("isometry::apply", mutates_args=(), device_types="cpu")
def _apply(
    stem: str, arguments: Tensors, x: Tensor, features: int, adjoint: bool, backend: str | None
) -> tuple[Tensor, Tensor]:
    out, c = room((*x.shape[:-1], features), x.dtype)
    at = place(backend)
    _core.operator_apply(stem, arrays(arguments), given(x), c, adjoint, False, at)
    return out, marked(at)


@_apply.register_fake
def _(
    _stem: str, _arguments: Tensors, x: Tensor, features: int, _adjoint: bool, _backend: str | None
) -> tuple[Tensor, Tensor]:
    return x.new_empty((*x.shape[:-1], features)), mark()


@torch.library.custom_op("isometry::apply_backward", mutates_args=(), device_types="cpu")
def _apply_backward(
    stem: str, arguments: Tensors, x: Tensor, ct: Tensor, adjoint: bool, on_gpu: Tensor, wanted: Sequence[bool]
) -> list[Tensor]:
    grads, (h_bar, *bars) = rooms(wanted, (x, *arguments))
    at = place_of(on_gpu)
    _core.operator_apply_vjp(stem, arrays(arguments), None, given(x), given(ct), tuple(bars), h_bar, adjoint, at)
    return filled(grads)


@_apply_backward.register_fake
def _(
    _stem: str, arguments: Tensors, x: Tensor, _ct: Tensor, _adjoint: bool, _on_gpu: Tensor, wanted: Sequence[bool]
) -> list[Tensor]:
    return fakes((x, *arguments), wanted)


class _Matrix(Function):
    @staticmethod
    def forward(ctx: Any, wanted: tuple[bool, ...], stem: str, shape: Any, backend: Any, *arguments: Any) -> Tensor:
        out, on_gpu = _matrix(stem, arguments, shape, backend)
        ctx.stem, ctx.wanted = stem, wanted
        ctx.save_for_backward(on_gpu, *arguments)
        return out

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        on_gpu, *arguments = ctx.saved_tensors
        grads = _matrix_backward(ctx.stem, arguments, ct, on_gpu, ctx.wanted)
        return (None, None, None, None, *owned(grads, ctx.wanted))


class _Apply(Function):
    @staticmethod
    def forward(
        ctx: Any, wanted: tuple[bool, ...], stem: str, adjoint: bool, features: int, backend: Any, *tensors: Any
    ) -> Tensor:
        x, *arguments = tensors
        out, on_gpu = _apply(stem, arguments, x, features, adjoint, backend)
        ctx.stem, ctx.adjoint, ctx.wanted = stem, adjoint, wanted
        ctx.save_for_backward(on_gpu, *tensors)
        return out

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> tuple[Tensor | None, ...]:
        on_gpu, x, *arguments = ctx.saved_tensors
        grads = _apply_backward(ctx.stem, arguments, x, ct, ctx.adjoint, on_gpu, ctx.wanted)
        return (None, None, None, None, None, *owned(grads, ctx.wanted))


def owned(grads: Sequence[Tensor], wanted: Sequence[bool]) -> list[Tensor | None]:
    """The wanted gradients, None for the others."""
    return [grad if w else None for grad, w in zip(grads, wanted, strict=True)]


def matrix(stem: str, shape: tuple[int, ...], backend: str | None, arguments: Tensors) -> Tensor:
    """W of the object with this stem."""
    own = trained(stem, wanted(arguments))
    if True not in own:
        return _matrix(stem, arguments, shape, backend)[0]
    return _Matrix.apply(own, stem, shape, backend, *distinct(*arguments))  # type: ignore[no-any-return]


def apply(stem: str, adjoint: bool, features: int, backend: str | None, x: Tensor, arguments: Tensors) -> Tensor:
    """Rows W x or W^H x of the object with this stem."""
    own = (*wanted((x,)), *trained(stem, wanted(arguments)))
    if True not in own:
        return _apply(stem, arguments, x, features, adjoint, backend)[0]
    return _Apply.apply(own, stem, adjoint, features, backend, *distinct(x, *arguments))  # type: ignore[no-any-return]
