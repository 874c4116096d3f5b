"""The kernel calls of linalg and their gradients, in eager mode and as operations of a compiled graph.

A call is declared once: the shapes of its results, its kernel, the kernel of its gradients, its formula. Arrays come with
no batch axis or with one, all of one dtype; the settings of a call are flags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from ... import _core
from .._function import Array, arrays, distinct, fakes, filled, formula_vjp, given, room, rooms, threads
from .._mode import FORMULA, GRAPH, RECORDED, differentiated, mode, wanted
from ..formulas import linalg as formulas

Flags = Sequence[bool]
Shapes = Sequence[tuple[int, ...]]


class Call(NamedTuple):
    """One function of linalg."""

    shapes: Callable[..., Shapes]  # of the results, from the tensors
    kernel: Callable[[Sequence[Any], Flags, Sequence[Array]], None]  # arrays, flags, results
    pull: Callable[[Sequence[Any], Flags, Sequence[Any], Sequence[Array | None]], None]  # arrays, flags, cts, bars
    formula: Callable[..., Any]  # of the tensors and the flags


def _product(own: Sequence[Any], _flags: Flags, out: Sequence[Array]) -> None:
    _core.linalg_product(*own, *out, threads())


def _product_pull(own: Sequence[Any], _flags: Flags, cts: Sequence[Any], bars: Sequence[Array | None]) -> None:
    _core.linalg_product_vjp(*own, *cts, *bars, threads())


def _apply(own: Sequence[Any], flags: Flags, out: Sequence[Array]) -> None:
    _core.linalg_apply(*own, *flags, *out, threads())


def _apply_pull(own: Sequence[Any], flags: Flags, cts: Sequence[Any], bars: Sequence[Array | None]) -> None:
    _core.linalg_apply_vjp(*own, *cts, *flags, *bars, threads())


CALLS = {
    "product": Call(lambda a, _tau: [a.shape], _product, _product_pull, formulas.product),
    "apply": Call(lambda _a, _tau, x: [x.shape], _apply, _apply_pull, formulas.apply),
}


def call(name: str, tensors: tuple[Tensor, ...], *flags: bool) -> tuple[Tensor, ...]:
    """The results of a call, in the mode of its tensors."""
    how = mode(*tensors)
    if how is FORMULA:
        out = CALLS[name].formula(*tensors, *flags)
        return out if isinstance(out, tuple) else (out,)
    if how is GRAPH:
        asked = wanted(tensors)
        if True not in asked:
            return tuple(_operation(name, tensors, flags))
        return _Graph.apply(asked, name, flags, *distinct(*tensors))  # type: ignore[no-any-return]
    if how is RECORDED:
        return _Recorded.apply(name, flags, *tensors)  # type: ignore[no-any-return]
    return _results(name, tensors, flags)


def _results(name: str, tensors: Sequence[Tensor], flags: Flags) -> tuple[Tensor, ...]:
    own = CALLS[name]
    made = [room(shape, tensors[0].dtype) for shape in own.shapes(*tensors)]
    own.kernel(arrays(tensors), flags, [out for _, out in made])
    return tuple([t for t, _ in made])


def _gradients(
    name: str, tensors: Sequence[Tensor], flags: Flags, cts: Sequence[Tensor], asked: Flags
) -> tuple[Tensor | None, ...]:
    # a and tau together: their gradients share nearly all work
    asked = (asked[0] or asked[1], asked[0] or asked[1], *asked[2:])
    grads, bars = rooms(asked, tensors)
    CALLS[name].pull(arrays(tensors), flags, [given(ct) for ct in cts], bars)
    return grads


class _Recorded(Function):
    @staticmethod
    def forward(ctx: Any, name: str, flags: Flags, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.name, ctx.flags = name, flags
        ctx.save_for_backward(*tensors)
        return _results(name, tensors, flags)

    @staticmethod
    def backward(ctx: Any, *cts: Tensor) -> tuple[Tensor | None, ...]:
        tensors, flags, asked = ctx.saved_tensors, ctx.flags, ctx.needs_input_grad[2:]
        if differentiated(*cts):
            formula = CALLS[ctx.name].formula

            def of_tensors(*tensors: Tensor) -> Any:
                return formula(*tensors, *flags)

            return (None, None, *formula_vjp(of_tensors, tensors, asked, cts if len(cts) > 1 else cts[0]))
        grads = _gradients(ctx.name, tensors, flags, cts, asked)
        return (None, None, *[g if w else None for g, w in zip(grads, asked, strict=True)])


@torch.library.custom_op("isometry::linalg", mutates_args=(), device_types="cpu")
def _operation(name: str, tensors: Sequence[Tensor], flags: Sequence[bool]) -> list[Tensor]:
    return list(_results(name, tensors, flags))


@_operation.register_fake
def _(name: str, tensors: Sequence[Tensor], _flags: Sequence[bool]) -> list[Tensor]:
    return [tensors[0].new_empty(shape) for shape in CALLS[name].shapes(*tensors)]


@torch.library.custom_op("isometry::linalg_backward", mutates_args=(), device_types="cpu")
def _operation_backward(
    name: str, tensors: Sequence[Tensor], flags: Sequence[bool], cts: Sequence[Tensor], asked: Sequence[bool]
) -> list[Tensor]:
    grads = _gradients(name, tensors, flags, cts, asked)
    return filled([g if w else None for g, w in zip(grads, asked, strict=True)])


@_operation_backward.register_fake
def _(
    _name: str, tensors: Sequence[Tensor], _flags: Sequence[bool], _cts: Sequence[Tensor], asked: Sequence[bool]
) -> list[Tensor]:
    return fakes(tensors, asked)


class _Graph(Function):
    @staticmethod
    def forward(ctx: Any, asked: Flags, name: str, flags: Flags, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.asked, ctx.name, ctx.flags = asked, name, flags
        ctx.save_for_backward(*tensors)
        return tuple(_operation(name, tensors, flags))

    @staticmethod
    def backward(ctx: Any, *cts: Tensor) -> tuple[Tensor | None, ...]:
        grads = _operation_backward(ctx.name, ctx.saved_tensors, ctx.flags, cts, ctx.asked)
        return (None, None, None, *[g if w else None for g, w in zip(grads, ctx.asked, strict=True)])
