"""Kernels inside torch.func: a `torch.autograd.Function` and its backward pass for any computation by kernels.

Under `grad` and `vmap` tensors are wrapped and have no memory; a Function passes `through` the levels, and at the
bottom are the tensors that a kernel reads. The backward pass is a Function itself, because `torch.func.grad` always
records it; its own derivative is that of the formula. Saved values are results of the Function: every level wraps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.func import vjp, vmap

from ..._backend import Place
from .function import formula_vjp
from .levels import alive, through
from .mode import by_kernels
from .plan import Plan, Rows
from .private import is_batch_of_gradients

Tensors = Sequence[Tensor | None]
Dims = Sequence[int | None]


class PlanCall(NamedTuple):
    """A call of a plan, or a stack of calls.

    With a stack, every tensor and every result has its members as first axis; a tensor may have an axis of 1 there, for
    all members.
    """

    plan: Plan
    settings: Any
    place: Place
    stack: int | None

    @property
    def results(self) -> int:
        """How many results there are, without what is saved behind them."""
        return self.plan.count(self.settings)

    @property
    def nothing(self) -> tuple[int, ...]:
        """The shape of what stands for None among what is saved."""
        return (0,) if self.stack is None else (self.stack, 0)

    def members(self, size: int) -> int:
        """How many calls a batch of this size is."""
        return size if self.stack is None else size * self.stack

    def run(self, tensors: Tensors) -> tuple[Tensor, ...]:
        """The results, then what is saved for backward."""
        plan, settings, at, stack = self
        if stack is None:
            results, saved = plan.run(settings, tensors, True, at)
        else:
            results, saved = plan.run_stack(settings, stack, tensors, at)
        return *results, *[results[0].new_empty(self.nothing) if t is None else torch.as_tensor(t) for t in saved]

    def pull(self, tensors: Tensors, out: Sequence[Tensor], cts: Tensors, wanted: Sequence[bool]) -> Tensors:
        """The wanted gradients, from what `run` returned and the cotangents of the results; with a stack those of every
        member, also of tensors for all of them.
        """
        plan, settings, at, stack = self
        results = plan.kept(settings, out[: self.results])
        saved = tuple([None if t.shape == self.nothing else t for t in out[self.results :]])
        cts = [t.new_zeros(t.shape) if ct is None else ct for ct, t in zip(cts, out, strict=False)]
        start = results, saved, cts
        if stack is None:
            return plan.pull(settings, tensors, start, wanted, at)
        return plan.pull_stack(settings, stack, tensors, start, wanted, at)

    def formula(self, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        """The results in torch operations."""
        one = lambda *tensors: self.plan.formula(self.settings, *tensors)
        if self.stack is None:
            return one(*tensors)
        shared = [t is None or t.shape[0] != self.stack for t in tensors]
        members = [t[0] if t is not None and all_share else t for t, all_share in zip(tensors, shared, strict=True)]
        return vmap(one, tuple([None if all_share else 0 for all_share in shared]))(*members)


class _Pull(NamedTuple):
    """What a backward pass computes; the tensors, results and cotangents follow each other."""

    call: PlanCall
    wanted: tuple[bool, ...]
    inputs: int  # how many tensors
    saved: int  # of results, those that are saved included


def transformed(
    plan: Plan, settings: Any, place: Place, tensors: Tensors, stack: int | None = None
) -> tuple[Tensor, ...]:
    """The results of the plan, differentiable, inside torch.func."""
    call = PlanCall(plan, settings, place, plan.stack(tensors) if stack is None else stack)
    return through(Forward, call, *tensors)[: call.results]


class Forward(Function):
    """The results of a plan, and what it saves."""

    @staticmethod
    def forward(call: PlanCall, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        return call.run(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        call, *tensors = inputs
        ctx.call, ctx.count = call, len(tensors)
        ctx.save_for_backward(*tensors, *output)
        # not `call.results`: torch 2.8 traces no property of a named tuple
        ctx.mark_non_differentiable(*output[call.plan.count(call.settings) :])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *cts: Tensor | None) -> tuple[Tensor | None, ...]:
        call, count = ctx.call, ctx.count
        wanted = tuple(call.plan.trained(call.settings, ctx.needs_input_grad[1:]))
        saved, cts = alive(ctx.saved_tensors), cts[: call.results]
        tensors, out = saved[:count], saved[count:]
        if True not in wanted or all(ct is None for ct in cts):
            return (None,) * (1 + count)
        if any(ct is not None and is_batch_of_gradients(ct) for ct in cts):
            return (None, *formula_vjp(call.formula, tensors, wanted, cts))
        if not by_kernels(*tensors, *cts):
            return (None, *_spread(_by_formula(call, tensors, cts, wanted), wanted))
        pull = _Pull(call, wanted, count, len(out))
        return (None, *_spread(through(Backward, pull, *tensors, *out, *cts), wanted))

    @staticmethod
    def vmap(size: int, dims: Dims, call: PlanCall, tensors: Tensors) -> tuple[Any, Any]:
        rows = _rows(call, [i for i, dim in enumerate(dims) if dim is not None], tensors)
        if rows is not None:
            folded = _folded(tensors, dims, rows.tensors, size, rows.one)
            return _unfolded(through(Forward, call, *folded), rows.results, size, rows.one)
        joined = _joined(tensors, dims, size, call.stack)
        out = through(Forward, call._replace(stack=call.members(size)), *joined)
        return tuple([_parted(t, size, call.stack) for t in out]), (0,) * len(out)


class Backward(Function):
    """The wanted gradients of a plan."""

    @staticmethod
    def forward(pull: _Pull, *all_tensors: Tensor | None) -> tuple[Tensor, ...]:
        call, wanted, count, saved = pull
        tensors, out, cts = all_tensors[:count], all_tensors[count : count + saved], all_tensors[count + saved :]
        grads = call.pull(tensors, out, cts, wanted)  # type: ignore[arg-type]
        return tuple([_like(g, t) for g, t, w in zip(grads, tensors, wanted, strict=True) if w])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        del output
        ctx.pull = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *cts: Tensor) -> tuple[Tensor | None, ...]:
        pull, given = ctx.pull, alive(ctx.saved_tensors)
        call, wanted, count, saved = pull
        places = [i for i, w in enumerate(ctx.needs_input_grad[1:]) if w and not count <= i < count + saved]

        def gradients(*own: Tensor) -> tuple[Tensor, ...]:
            at = list(given)
            for i, t in zip(places, own, strict=True):
                at[i] = t
            return _by_formula(call, at[:count], at[count + saved :], wanted)

        grads: list[Tensor | None] = [None] * (1 + len(given))
        found = vjp(gradients, *[given[i] for i in places])[1](cts)
        for i, g in zip(places, found, strict=True):
            grads[1 + i] = g
        return tuple(grads)

    @staticmethod
    def vmap(size: int, dims: Dims, pull: _Pull, given: Tensors) -> tuple[Any, Any]:
        call, wanted, count, saved = pull
        # A wanted gradient differs between the members, also that of a tensor for all of them.
        own = [i for i in range(count) if wanted[i] or dims[i] is not None]
        rows = _rows(call, own, given[:count])
        if rows is not None:
            axes = (*rows.tensors, *rows.results[:saved], *rows.results[: len(dims) - count - saved])
            if not any(dim is not None and axis is None for dim, axis in zip(dims, axes, strict=True)):
                kept = saved if not call.plan.spare or dims[count] is not None else call.results
                some = _folded(given, dims, axes, size, rows.one)
                some = _without(some, count + kept, count + saved)
                found = through(Backward, _Pull(call, wanted, count, kept), *some)
                return _unfolded(found, [axes[i] for i in range(count) if wanted[i]], size, rows.one)
        stack = call.members(size)
        tensors = [
            t.expand(stack, *t.shape[1:]) if t is not None and (i >= count or wanted[i]) else t
            for i, t in enumerate(_joined(given, dims, size, call.stack))
        ]
        alone = any(dim is None for dim in dims[count + call.results : count + saved])
        kept = call.results if call.plan.spare and alone else saved
        over = _Pull(call._replace(stack=stack), wanted, count, kept)
        grads = through(Backward, over, *_without(tensors, count + kept, count + saved))
        asked = [(given[i], dims[i]) for i in range(count) if wanted[i]]
        parts = []
        for grad, (t, dim) in zip(grads, asked, strict=True):
            assert t is not None
            grad = _parted(grad, size, call.stack)
            one = call.stack is not None and t.shape[0 if dim != 0 else 1] == 1
            parts.append(grad.sum(1, keepdim=True) if one else grad)
        return tuple(parts), (0,) * len(parts)


# ---------------------------------------------------------------- parts


def _rows(call: PlanCall, batched: Sequence[int], tensors: Tensors) -> Rows | None:
    """Where a batch of some of the tensors is as good as more rows; None where it is not."""
    return None if call.stack is not None else call.plan.rows(call.settings, batched, tensors)


def _by_formula(call: PlanCall, tensors: Tensors, cts: Tensors, wanted: Sequence[bool]) -> tuple[Tensor, ...]:
    """The wanted gradients of the formula."""
    places = [i for i, w in enumerate(wanted) if w]

    def some(*own: Tensor) -> tuple[Tensor, ...]:
        at = list(tensors)
        for i, t in zip(places, own, strict=True):
            at[i] = t
        return tuple([t for t, ct in zip(call.formula(*at), cts, strict=True) if ct is not None])

    known = tuple([ct for ct in cts if ct is not None])
    return vjp(some, *[tensors[i] for i in places])[1](known)


def _spread(grads: Sequence[Tensor], wanted: Sequence[bool]) -> list[Tensor | None]:
    """The wanted gradients, None for the others."""
    found = iter(grads)
    return [next(found) if w else None for w in wanted]


def _without(tensors: list[Tensor | None], start: int, stop: int) -> list[Tensor | None]:
    """The tensors before and after these."""
    return [*tensors[:start], *tensors[stop:]]


def _like(grad: Tensor | None, t: Tensor | None) -> Tensor:
    """The gradients of all members, in the shape of a tensor that may be one for all of them."""
    assert grad is not None and t is not None
    return grad if grad.shape == t.shape else grad.sum(0, keepdim=True)


def _folded(tensors: Tensors, dims: Dims, axes: Dims, size: int, one: bool) -> list[Tensor | None]:
    """The tensors with the batch among their rows."""
    made: list[Tensor | None] = []
    for t, dim, axis in zip(tensors, dims, axes, strict=True):
        if t is not None and axis is not None:
            to = axis + one
            t = t.unsqueeze(to).expand(*t.shape[:to], size, *t.shape[to:]) if dim is None else t.movedim(dim, to)
            t = t.flatten(axis, to) if one else t
        made.append(t)
    return made


def _unfolded(out: Sequence[Tensor], axes: Dims, size: int, one: bool) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
    """The results of `_folded` tensors with the batch as an axis, and which axis that is."""
    axes = axes[: len(out)]
    parts = [t.unflatten(a, (-1, size)) if one and a is not None else t for t, a in zip(out, axes, strict=True)]
    return tuple(parts), tuple([None if axis is None else axis + one for axis in axes])


def _joined(tensors: Tensors, dims: Dims, size: int, stack: int | None) -> list[Tensor | None]:
    """The tensors with the batch as first axis, one with the stack if there is one; of size 1 where all members share
    it.
    """
    made: list[Tensor | None] = []
    for t, dim in zip(tensors, dims, strict=True):
        if t is not None:
            t = t.unsqueeze(0) if dim is None else t.movedim(dim, 0)
            if stack is not None:
                all_share = dim is None and t.shape[1] == 1
                t = t[0] if all_share else t.expand(size, stack, *t.shape[2:]).flatten(0, 1)
        made.append(t)
    return made


def _parted(t: Tensor, size: int, stack: int | None) -> Tensor:
    """The batch and the stack as two axes again."""
    return t if stack is None else t.unflatten(0, (size, stack))
