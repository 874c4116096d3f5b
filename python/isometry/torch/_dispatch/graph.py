"""The calls of kernels as operations of a compiled graph.

`torch.compile` cannot trace a kernel: it sees a pair of operators for each kind of call, `isometry::<kind>` and
`isometry::<kind>_backward`, and a Function that connects them. The operators have no derivative of their own, so they
cannot be differentiated incorrectly. Only gradients that are recorded are computed.

The backend is read when an operator runs, and saved for its gradient, so that one graph serves both backends. The
routes by cost are chosen then too, so that one graph serves any number of rows and steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from ..._rules import check_export
from .function import distinct
from .mode import wanted
from .plan import Operators, Plan

Tensors = Sequence[Tensor | None]


def custom_operators(kind: str, schema: str, found: Callable[..., tuple[Plan, Any]]) -> Operators:
    """The operators whose first arguments, the encoded settings, are of this schema.

    From these `found` returns the plan and its settings.
    """

    def forward(*arguments: Any) -> list[Tensor]:
        *encoded, tensors, backend, saving = arguments
        plan, settings = found(*encoded)
        at = plan.place(backend)
        shapes = plan.shapes(settings, tensors, saving)
        results, saved = plan.run(settings, tensors, len(shapes) > plan.count(settings), at)
        out = [*results, *saved, *(None,) * len(shapes)]
        filled = [results[0].new_zeros(shape) if t is None else t for t, shape in zip(out, shapes, strict=False)]
        return [*filled, torch.tensor(at == "gpu", device="cpu")]

    def of_shapes(*arguments: Any) -> list[Tensor]:
        *encoded, tensors, _, saving = arguments
        if torch.onnx.is_in_onnx_export():
            check_export.in_onnx(f"isometry::{kind}")
        plan, settings = found(*encoded)
        lead, dtype = plan.lead(tensors), plan.dtype(tensors)
        made = [lead.new_empty(shape, dtype=dtype) for shape in plan.shapes(settings, tensors, saving)]
        return [*made, torch.empty((), dtype=torch.bool, device="cpu")]

    def backward(*arguments: Any) -> list[Tensor]:
        *encoded, tensors, (*kept, on_gpu), cts, wanted = arguments
        plan, settings = found(*encoded)
        kept = [None if t is None or t.shape == (0,) else t for t in kept]
        read = len(plan.kept(settings, (None,) * plan.count(settings)))
        at = plan.place("gpu" if on_gpu else "cpu")
        grads = plan.pull(settings, tensors, (kept[:read], tuple(kept[read:]), cts), wanted, at)
        return [_nothing() if g is None or not w else g for g, w in zip(grads, wanted, strict=True)]

    def of_gradients(*arguments: Any) -> list[Tensor]:
        *_, tensors, _, _, wanted = arguments
        return [t.new_empty(t.shape) if w else _nothing() for t, w in zip(tensors, wanted, strict=True)]

    made = []
    for name, more, f, fake in (
        (kind, "str? backend, bool saving", forward, of_shapes),
        (f"{kind}_backward", "Tensor?[] out, Tensor[] cts, bool[] wanted", backward, of_gradients),
    ):
        text = f"({', '.join(filter(None, (schema, 'Tensor?[] tensors', more)))}) -> Tensor[]"
        operator = torch.library.custom_op(f"isometry::{name}", f, mutates_args=(), device_types="cpu", schema=text)
        operator.register_fake(fake)
        made.append(getattr(torch.ops.isometry, name).default)
    return Operators(*made)


def _nothing() -> Tensor:
    """None among the results of an operator, which must be tensors."""
    return torch.empty(0, device="cpu")


class Traced(Function):
    """The results of a plan in a graph, with the gradients that are wanted."""

    @staticmethod
    def forward(ctx: Any, plan: Any, wanted: Any, backend: Any, settings: Any, *tensors: Any) -> tuple[Tensor, ...]:
        *out, on_gpu = plan.operators.forward(*plan.encoded(settings), tensors, backend, True)
        results, saved = out[: plan.count(settings)], out[plan.count(settings) :]
        ctx.plan, ctx.wanted, ctx.settings = plan, wanted, settings
        tensors = () if plan.linear else tensors
        ctx.tensors = len(tensors)
        ctx.save_for_backward(*tensors, *plan.kept(settings, results), *saved, on_gpu)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cts: Tensor) -> tuple[Tensor | None, ...]:
        plan, kept, count = ctx.plan, ctx.saved_tensors, ctx.tensors
        tensors, out = cts if plan.linear else kept[:count], kept[count:]
        grads = plan.operators.backward(*plan.encoded(ctx.settings), tensors, out, cts, ctx.wanted)
        return (None, None, None, None, *[g if w else None for g, w in zip(grads, ctx.wanted, strict=True)])


def in_graph(plan: Plan, settings: Any, backend: str | None, tensors: Tensors) -> tuple[Tensor, ...]:
    """The results of a plan in a graph."""
    asked = plan.trained(settings, wanted(tensors))
    if True in asked:
        return Traced.apply(plan, asked, backend, settings, *distinct(*tensors))  # type: ignore[no-any-return]
    assert plan.operators is not None
    out = plan.operators.forward(*plan.encoded(settings), tensors, backend, False)
    return tuple(out[: plan.count(settings)])
