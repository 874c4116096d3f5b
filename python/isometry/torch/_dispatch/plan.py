"""The calls of kernels. A `Plan` says what a kind of call computes, for every mode of torch (`results`).

A plan is made when the package is imported: shapes, kernels, formula. A call has tensors, None where one is absent, and
settings, which are no tensors. Kernels save arrays for the backward pass; gradients of gradients follow the formula.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from ..._backend import Place
from .function import formula_vjp, threads
from .mode import differentiated
from .private import uncompiled

Settings: TypeAlias = Any
#: Tensors, or None.
Tensors: TypeAlias = Sequence[Any]
Flags: TypeAlias = Sequence[bool]
Results: TypeAlias = tuple[Tensor, ...]
#: What a kernel saves: tensors, None where one is absent, or one small array, which autograd need not watch.
Saved: TypeAlias = tuple[Any, ...]
#: What a backward pass starts from: the results that are kept, what was saved, the cotangents of the results.
Out: TypeAlias = tuple[Tensors, Saved, Tensors]


class Operators(NamedTuple):
    """The two operators of a kind of call."""

    forward: Any
    backward: Any


class Rows(NamedTuple):
    """The axes of rows of the tensors, of the results and of what is saved, None for those without rows."""

    tensors: Sequence[int | None]
    results: Sequence[int | None]
    one: bool  #: a single axis, into which a batch is folded; else the first of any number


class Plan(ABC):
    """A kind of call."""

    operators: Operators | None = None  #: in a graph; without them the formula computes there
    place: Callable[..., Place] = staticmethod(threads)  #: where the kernel runs, from the backend of a call
    #: Whether the gradients do not depend on the tensors, which are then not saved, and have their shapes.
    linear: bool = False
    #: Inside torch.func, whether what is saved may be missing and must fit the rows.
    spare: bool = False
    #: The axes of the first tensor in one call, if the kernel itself takes a stack of calls.
    rank: int | None = None

    def __init__(self, name: str) -> None:
        self.recorded = _recorded(self, name)

    @abstractmethod
    def run(self, settings: Settings, tensors: Tensors, saving: bool, at: Place) -> tuple[Results, Saved]:
        """The results by the kernel, and what it saves if it is told to."""

    @abstractmethod
    def pull(self, settings: Settings, tensors: Tensors, out: Out, wanted: Flags, at: Place) -> Tensors:
        """The wanted gradients by the kernel."""

    @abstractmethod
    def formula(self, settings: Settings, *tensors: Tensor | None) -> Results:
        """The results in torch operations."""

    def on_device(self, settings: Settings, *tensors: Tensor | None) -> Results:
        """The results on a device that has no kernels, in torch operations."""
        return self.formula(settings, *tensors)

    def by_formula(self, settings: Settings, tensors: Tensors, wanted: Flags, cts: Tensors) -> Tensors:
        """The wanted gradients in torch operations, as functions of the tensors and the cotangents."""
        return formula_vjp(partial(self.formula, settings), tensors, wanted, cts)

    def count(self, settings: Settings) -> int:
        """How many results there are."""
        del settings
        return 1

    def kept(self, settings: Settings, results: Tensors) -> Tensors:
        """The results from which the gradients are computed."""
        del settings, results
        return ()

    def encoded(self, settings: Settings) -> Settings:
        """The settings as the operators of a graph take them."""
        return settings

    def trained(self, settings: Settings, recorded: Flags) -> Flags:
        """The gradients to compute of those that are recorded."""
        del settings
        return recorded

    def lead(self, tensors: Tensors) -> Tensor:
        """A tensor like the results."""
        return tensors[0]  # type: ignore[no-any-return]

    def dtype(self, tensors: Tensors) -> torch.dtype:
        """The dtype of the results."""
        return self.lead(tensors).dtype

    def shapes(self, settings: Settings, tensors: Tensors, saving: bool) -> Sequence[Any]:
        """In a graph, the shapes of the results and of what is saved."""
        del settings, saving
        return (self.lead(tensors).shape,)

    # ---------------------------------------------------------------- batches of torch.func

    def stack(self, tensors: Tensors) -> int | None:
        """The size of the first axis if all tensors have one for a stack of calls."""
        first = self.lead(tensors)
        return None if self.rank is None or first.dim() == self.rank else first.shape[0]

    def rows(self, settings: Settings, batched: Sequence[int], tensors: Tensors) -> Rows | None:
        """Where a batch of some of the tensors is as good as more rows; None where it is not."""
        del settings, batched, tensors
        return None

    def run_stack(self, settings: Settings, stack: int, tensors: Tensors, at: Place) -> tuple[Results, Saved]:
        """`run` for a stack of calls. Every tensor has its members as first axis, or an axis of 1 for all of them."""
        if self.rank is not None:
            results, saved = self.run(settings, full(tensors, stack), True, at)
            return results, tuple([torch.as_tensor(t).reshape(stack, -1) for t in saved])
        each = [self.run(settings, member(tensors, i), True, at) for i in range(stack)]
        results_of, saved_of = (zip(*parts, strict=True) for parts in zip(*each, strict=True))
        return tuple(map(_stacked, results_of)), tuple(map(_stacked, saved_of))

    def pull_stack(
        self, settings: Settings, stack: int, tensors: Tensors, out: Out, wanted: Flags, at: Place
    ) -> Tensors:
        """`pull` for a stack of calls: the gradients of every member, also of tensors for all of them."""
        if self.rank is not None:
            return self.pull(settings, full(tensors, stack), out, wanted, at)
        of = lambda i: tuple([member(tensors, i) for tensors in out])
        each = [self.pull(settings, member(tensors, i), of(i), wanted, at) for i in range(stack)]  # type: ignore[arg-type]
        return [_stacked(grads) for grads in zip(*each, strict=True)]


def member(tensors: Tensors, i: int) -> list[Tensor | None]:
    """The tensors of a member."""
    return [None if t is None else t[i if t.shape[0] > 1 else 0] for t in tensors]


def full(tensors: Tensors, stack: int) -> list[Tensor | None]:
    """The tensors, each with all its members."""
    return [None if t is None else t.expand(stack, *t.shape[1:]) for t in tensors]


def _stacked(parts: Any) -> Any:
    return None if parts[0] is None else torch.stack(parts)


def _recorded(plan: Plan, name: str) -> Callable[..., Results]:
    """The kernel's call with its gradient recorded, by a Function of this name, which users see as `grad_fn`."""
    run, pull, trained, kept, place, linear = plan.run, plan.pull, plan.trained, plan.kept, plan.place, plan.linear

    def forward(ctx: Any, settings: Settings, backend: str | None, *tensors: Tensor | None) -> Results:
        at, held = place(backend), None
        results, saved = run(settings, tensors, True, at)
        read = kept(settings, results)
        if saved and type(saved[0]) is np.ndarray:
            saved, held = (), saved
        if linear:
            tensors = ()
        ctx.call = settings, at, len(tensors), len(read), held
        ctx.save_for_backward(*tensors, *read, *saved)
        return results

    @uncompiled
    def backward(ctx: Any, *cts: Tensor) -> tuple[Tensor | None, ...]:
        settings, at, count, read, held = ctx.call
        every = ctx.saved_tensors
        tensors, wanted = every[:count], trained(settings, ctx.needs_input_grad[2:])
        if differentiated(*cts):
            return (None, None, *plan.by_formula(settings, tensors, wanted, cts))
        out = every[count : count + read], held or every[count + read :], cts
        return (None, None, *pull(settings, tensors, out, wanted, at))

    parts = {"forward": staticmethod(forward), "backward": staticmethod(backward), "__doc__": plan.__doc__}
    return type(name, (Function,), parts).apply  # type: ignore[attr-defined, no-any-return]
