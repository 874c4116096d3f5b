"""A Function through the levels of torch.func, as `torch.autograd.Function.apply` does it, at a fourth of its time.

A level of `grad` records a Function and unwraps its tensors, a level of `vmap` calls its rule for batches. torch makes
a class for every recorded call and flattens all arguments at every level; here they are one value that is no tensor,
then tensors or None.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from .function import aliased
from .private import REACHED, SingleLevelFunction, functorch, is_forward_mode_enabled, set_forward_mode_enabled

Tensors = Sequence[Tensor | None]


@dataclass(frozen=True, slots=True)
class _Level:
    """What a level of `grad` records besides tensors."""

    function: Any
    value: Any
    level: int
    grad_mode: bool  # around the transform


class _Recorded(SingleLevelFunction):
    """A Function at one level; the levels below are outside the stack while it runs."""

    @staticmethod
    def forward(call: _Level, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        own = [None if t is None else functorch._unwrap_for_grad(t, call.level) for t in tensors]
        forward_mode, grad_mode = is_forward_mode_enabled(), torch.is_grad_enabled()
        set_forward_mode_enabled(True)
        torch.set_grad_enabled(call.grad_mode)
        try:
            out = _below(_through, call.function, call.value, own)
        finally:
            torch.set_grad_enabled(grad_mode)
            set_forward_mode_enabled(forward_mode)
        return tuple([functorch._wrap_for_grad(t, call.level) for t in out])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        call, *tensors = inputs
        ctx.function = call.function
        call.function.setup_context(ctx, (call.value, *tensors), output)

    @staticmethod
    def backward(ctx: Any, *cts: Tensor | None) -> tuple[Tensor | None, ...]:
        return ctx.function.backward(ctx, *cts)


def through(function: type[Function], value: object, *tensors: Tensor | None) -> tuple[Tensor, ...]:
    """`function.apply(value, *tensors)` inside torch.func or outside; the function returns a tuple of tensors.

    Its rule for batches, `vmap`, takes their size, which axis of each tensor is the batch (None if none), the value and
    the tensors, and returns results and their axes.
    """
    if not REACHED or functorch.peek_interpreter_stack() is None:
        return function.apply(value, *aliased(tensors))
    return _through(function, value, alive(tensors))


def alive(tensors: Tensors) -> list[Tensor | None]:
    """The tensors without the wrappers of transforms that have ended, as those saved for a later `vjp` have them."""
    return [t if t is None or not REACHED else functorch.unwrap_if_dead(t) for t in tensors]


def _through(function: Any, value: object, tensors: Tensors) -> tuple[Tensor, ...]:
    top = functorch.peek_interpreter_stack()
    if top is None:
        recording = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
        return function.apply(value, *aliased(tensors)) if recording else function.forward(value, *tensors)
    number = top.level()
    if top.key() == functorch.TransformType.Grad:
        level = functorch.CGradInterpreterPtr(top)  # a pointer to `top`
        lifted = [None if t is None else level.lift(t) for t in tensors]
        before = functorch.get_single_level_autograd_function_allowed()
        functorch.set_single_level_autograd_function_allowed(True)
        try:
            found = _Recorded.apply(_Level(function, value, number, level.prevGradMode()), *lifted)  # type: ignore[attr-defined]
        finally:
            functorch.set_single_level_autograd_function_allowed(before)
        return found
    pairs = [(None, None) if t is None else functorch._unwrap_batched(t, number) for t in tensors]
    dims = [dim for _, dim in pairs]
    if all(dim is None for dim in dims):
        return _below(_through, function, value, tensors)
    size = functorch.CVmapInterpreterPtr(top).batchSize()
    if size == 0:
        out, axes = _below(_nothing, function, dims, value, [t for t, _ in pairs])
    else:
        out, axes = _below(function.vmap, size, dims, value, [t for t, _ in pairs])
    return tuple(
        [t if axis is None else functorch._add_batch_dim(t, axis, number) for t, axis in zip(out, axes, strict=True)]
    )


def _nothing(function: Any, dims: Sequence[int | None], value: object, tensors: Tensors) -> tuple[Any, Any]:
    """The results of no member at all: none of those of one member, of which only the shapes count."""
    one = [t if t is None or dim is None else _one(t, dim) for t, dim in zip(tensors, dims, strict=True)]
    out, axes = function.vmap(1, dims, value, one)
    return tuple([t if axis is None else t.narrow(axis, 0, 0) for t, axis in zip(out, axes, strict=True)]), axes


def _one(t: Tensor, dim: int) -> Tensor:
    """A batch of one member for one of none: ones, which are allowed everywhere, or numbers from 0 on where these
    choose elements.
    """
    shape = (*t.shape[:dim], 1, *t.shape[dim + 1 :])
    if t.is_floating_point() or t.is_complex():
        return t.new_ones(shape)
    return torch.arange(shape[-1], dtype=t.dtype, device=t.device).expand(shape)


def _below(f: Any, *given: Any) -> Any:
    """`f(*given)` without the innermost level."""
    saved = functorch.pop_dynamic_layer_stack()
    try:
        return f(*given)
    finally:
        functorch.push_dynamic_layer_stack(saved)
