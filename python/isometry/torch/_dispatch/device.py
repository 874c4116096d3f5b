"""A computation on a device without kernels as one operation of autograd.

The formulas leave a record of each of their operations. Where fewer do, because their gradient has a form of its own,
the forward and the backward pass are written out as torch operations here; gradients of gradients follow the formula.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor, is_inference_mode_enabled
from torch.autograd import Function

from .function import aliased, formula_vjp
from .mode import differentiated, wanted

Tensors = Sequence[Tensor | None]


class Operations(Protocol):
    """A call, with its settings as attributes; its tensors are given, None where one is absent."""

    def run(self, given: Sequence[Any], saving: bool) -> tuple[tuple[Tensor, ...], Tensors]:
        """The results, and what `pull` reads if it is told to save."""

    def pull(self, given: Sequence[Any], saved: Sequence[Any], wanted: Sequence[bool], cts: Sequence[Any]) -> Tensors:
        """The wanted gradients."""

    def formula(self, *given: Any) -> tuple[Tensor, ...]:
        """The results, in operations that autograd records one by one."""


def computed_there(call: Operations, given: Tensors) -> tuple[Tensor, ...]:
    """The results of a call, with its gradient recorded where one is wanted."""
    if any(wanted(given)) and not is_inference_mode_enabled():
        return _Recorded.apply(call, *aliased(given))  # type: ignore[no-untyped-call]
    return call.run(given, False)[0]


class _Recorded(Function):
    """The call and its gradient."""

    @staticmethod
    def forward(ctx: Any, call: Operations, *given: Tensor | None) -> tuple[Tensor, ...]:
        results, saved = call.run(given, True)
        ctx.call, ctx.count = call, len(given)
        ctx.save_for_backward(*given, *saved)
        return results

    @staticmethod
    def backward(ctx: Any, *cts: Tensor) -> tuple[Tensor | None, ...]:
        call, every, asked = ctx.call, ctx.saved_tensors, ctx.needs_input_grad[1:]
        given, saved = every[: ctx.count], every[ctx.count :]
        if differentiated(*cts):
            return (None, *formula_vjp(call.formula, given, asked, cts))
        return (None, *call.pull(given, saved, asked, cts))
