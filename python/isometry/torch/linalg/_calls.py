"""The kernel calls of linalg and their gradients, in eager mode and as operations of a compiled graph.

A call is declared once: the shapes of its results, its kernel, the kernel of its gradients, its formula. Arrays come
with no batch axis or with one, all of one dtype; the settings of a call are flags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from ... import _core
from .._function import arrays, distinct, fakes, filled, formula_vjp, room, rooms, threads
from .._mode import FORMULA, GRAPH, RECORDED, differentiated, mode, wanted
from ..formulas import linalg as formulas
from ..operators._compiled import owned

Flags = Sequence[bool]
Tensors = Sequence[Tensor]
Arrays = Sequence[Any]
Bars = Sequence[Any]
Shapes = Sequence[tuple[int, ...]]


class Call(NamedTuple):
    """One function of linalg."""

    shapes: Callable[..., Shapes]  # of the results, from the tensors
    kernel: Callable[..., None]  # tensors, flags, results and threads as the extension takes them
    pull: Callable[..., None]  # tensors, flags, results, cotangents, gradients, threads
    formula: Callable[..., Any]  # of the tensors and the flags
    saves: bool = False  # whether the gradient reads the results


def _product_pull(own: Arrays, _flags: Flags, _out: Arrays, cts: Arrays, bars: Bars, threads: int) -> None:
    _core.linalg_product_vjp(*own, *cts, *bars, threads)  # type: ignore[call-arg, arg-type]


def _apply_pull(own: Arrays, flags: Flags, _out: Arrays, cts: Arrays, bars: Bars, threads: int) -> None:
    _core.linalg_apply_vjp(*own, *cts, *flags, *bars, threads)  # type: ignore[call-arg, arg-type]


def _geqrf_pull(_own: Arrays, _flags: Flags, out: Arrays, cts: Arrays, bars: Bars, threads: int) -> None:
    _core.linalg_geqrf_vjp(*out, *cts, *bars, threads)  # type: ignore[call-arg, arg-type]


def _factors(x: Tensor) -> Shapes:
    return [x.shape, (*x.shape[:-2], min(x.shape[-2:]))]


CALLS = {
    "product": Call(lambda a, _tau: [a.shape], _core.linalg_product, _product_pull, formulas.product),
    "apply": Call(lambda _a, _tau, x: [x.shape], _core.linalg_apply, _apply_pull, formulas.apply),
    "geqrf": Call(_factors, _core.linalg_geqrf, _geqrf_pull, formulas.geqrf, saves=True),
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
    own.kernel(*arrays(tensors), *flags, *[out for _, out in made], threads())
    return tuple([t for t, _ in made])


def _kept(name: str, results: Sequence[Tensor]) -> Sequence[Tensor]:
    """The results that the gradient reads."""
    return results if CALLS[name].saves else ()


def _gradients(
    name: str, tensors: Tensors, flags: Flags, results: Tensors, cts: Tensors, asked: Flags
) -> list[Tensor | None]:
    # a and tau together: their gradients share nearly all work
    both = any(asked[:2])
    grads, bars = rooms([both, both, *asked[2:]][: len(asked)], tensors)
    own, out, ways = (arrays(of) for of in (tensors, results, cts))
    CALLS[name].pull(own, flags, out, ways, bars, threads())
    return [g if w else None for g, w in zip(grads, asked, strict=True)]


class _Recorded(Function):
    @staticmethod
    def forward(ctx: Any, name: str, flags: Flags, *tensors: Tensor) -> tuple[Tensor, ...]:
        results = _results(name, tensors, flags)
        ctx.name, ctx.flags, ctx.given = name, flags, len(tensors)
        ctx.save_for_backward(*tensors, *_kept(name, results))
        return results

    @staticmethod
    def backward(ctx: Any, *cts: Tensor) -> tuple[Tensor | None, ...]:
        saved, flags, asked = ctx.saved_tensors, ctx.flags, ctx.needs_input_grad[2:]
        tensors, results = saved[: ctx.given], saved[ctx.given :]
        if differentiated(*cts):
            formula = CALLS[ctx.name].formula

            def of_tensors(*tensors: Tensor) -> Any:
                return formula(*tensors, *flags)

            return (None, None, *formula_vjp(of_tensors, tensors, asked, cts if len(cts) > 1 else cts[0]))
        return (None, None, *_gradients(ctx.name, tensors, flags, results, cts, asked))


@torch.library.custom_op("isometry::linalg", mutates_args=(), device_types="cpu")
def _operation(name: str, tensors: Sequence[Tensor], flags: Sequence[bool]) -> list[Tensor]:
    return list(_results(name, tensors, flags))


@_operation.register_fake
def _(name: str, tensors: Sequence[Tensor], _flags: Sequence[bool]) -> list[Tensor]:
    return [tensors[0].new_empty(shape) for shape in CALLS[name].shapes(*tensors)]


@torch.library.custom_op("isometry::linalg_backward", mutates_args=(), device_types="cpu")
def _operation_backward(
    name: str,
    tensors: Sequence[Tensor],
    flags: Sequence[bool],
    results: Sequence[Tensor],
    cts: Sequence[Tensor],
    asked: Sequence[bool],
) -> list[Tensor]:
    return filled(_gradients(name, tensors, flags, results, cts, asked))


@_operation_backward.register_fake
def _(
    _name: str,
    tensors: Sequence[Tensor],
    _flags: Sequence[bool],
    _results: Sequence[Tensor],
    _cts: Sequence[Tensor],
    asked: Sequence[bool],
) -> list[Tensor]:
    return fakes(tensors, asked)


class _Graph(Function):
    @staticmethod
    def forward(ctx: Any, asked: Flags, name: str, flags: Flags, *tensors: Tensor) -> tuple[Tensor, ...]:
        results = _operation(name, tensors, flags)
        ctx.asked, ctx.name, ctx.flags, ctx.given = asked, name, flags, len(tensors)
        ctx.save_for_backward(*tensors, *_kept(name, results))
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cts: Tensor) -> tuple[Tensor | None, ...]:
        saved, asked = ctx.saved_tensors, ctx.asked
        tensors, results = saved[: ctx.given], saved[ctx.given :]
        grads = _operation_backward(ctx.name, tensors, ctx.flags, results, cts, asked)
        return (None, None, None, *owned(grads, asked))
