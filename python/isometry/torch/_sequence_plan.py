"""The kernel calls of a cell over a sequence inside torch.func, and those of an ensemble: many in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from .. import _core
from ._cells import CELLS, Call
from ._function import Array, arrays, place, room, rooms
from ._function import given as to_kernel
from ._sequence_function import backward_by_route, ends, forward_by_route, shapes_of, through_matrix
from ._transforms import Plan, Rows, Tensors
from .formulas.sequence import states as by_formula
from .operators._functions import BY_STEM, trained


class SequencePlan(Plan):
    """The states of a call and the memory after them if the cell has one, from the tensors of these names, the
    arguments of its transition, and the lengths. Saved are what the cell saves and W, if it was formed; empty where
    absent.
    """

    def __init__(self, call: Call, names: Sequence[str], arguments: int, stack: int | None = None) -> None:
        self.call, self.names, self.count, self.arguments = call, tuple(names), len(names), arguments
        self.cell, self.stack, self.place = CELLS[call.cell], stack, place(call.backend)
        self.results = 1 + self.cell.declaration.memory(*call.settings)

    def over(self, stack: int | None) -> Self:
        made = self.__new__(type(self))
        made.__dict__.update(self.__dict__, stack=stack)
        return made

    def asked(self, wanted: Sequence[bool]) -> tuple[bool, ...]:
        return (*wanted[: self.count], *trained(self.call.stem, wanted[self.count : -1]), False)

    def run(self, tensors: Tensors) -> tuple[Tensor, ...]:
        if self.stack is not None:
            return self._ensemble(tensors, self.stack) if self.cell.ensemble else self._each(tensors, self.stack)
        given, own, lengths = self._parts(tensors)
        states, memory, saved, _, weight = forward_by_route(self.call, True, given, own, lengths, self.place)
        found = (states,) if memory is None else (states, memory)
        return *found, *[states.new_empty(0) if t is None else t for t in (saved, weight)]

    def pull(self, tensors: Tensors, out: Sequence[Tensor], cts: Tensors, wanted: Sequence[bool]) -> Tensors:
        if self.stack is not None:
            pull = self._ensemble_pull if self.cell.ensemble else self._each_pull
            return pull(tensors, out, cts, wanted, self.stack)
        given, own, lengths = self._parts(tensors)
        *results, saved, weight = [t if t.numel() else None for t in out]
        results = [*results, None][:2]
        last = given, own, lengths, (*results, saved, weight), cts, wanted[:-1], self.place
        return [*backward_by_route(self.call, *last), None]

    def member(self, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        call, (given, own, lengths) = self.call, self._parts(tensors)
        weight = BY_STEM[call.stem].matrix_formula(*own) if call.stem else None
        found = by_formula(self.cell.formula, call.law, lengths, call.reverse, weight, *given)  # type: ignore[arg-type]
        return found[: self.results]

    def rows(self, batched: Sequence[int]) -> Rows | None:
        declaration = self.cell.declaration
        each = {"x": 1, **{name: 0 for name, _ in declaration.each}}
        axes = (*[each.get(name) for name in self.names], *(None,) * self.arguments)
        # Lengths must not increase: those of a batch are not in order. What a cell saves has an order of its own.
        if len(axes) in batched or any(axes[i] is None for i in batched) or declaration.saved(*self.call.settings):
            return None
        return Rows((*axes, 0), (*(1, 0)[: self.results], None, None), True)

    def _parts(self, tensors: Tensors) -> tuple[Tensors, Tensors, Tensor | None]:
        """The tensors of the cell, the arguments of the transition, the lengths."""
        return tensors[: self.count], tensors[self.count : -1], tensors[-1]

    # ---------------------------------------------------------------- members one by one

    def _of(self, tensors: Tensors, i: int) -> list[Tensor | None]:
        """The tensors of a member."""
        return [None if t is None else t[i if t.shape[0] > 1 else 0] for t in tensors]

    def _each(self, tensors: Tensors, stack: int) -> tuple[Tensor, ...]:
        one = self.over(None)
        found = [one.run(self._of(tensors, i)) for i in range(stack)]
        return tuple([torch.stack(parts) for parts in zip(*found, strict=True)])

    def _each_pull(
        self, tensors: Tensors, out: Sequence[Tensor], cts: Tensors, wanted: Sequence[bool], stack: int
    ) -> Tensors:
        one, of = self.over(None), self._of
        found = [one.pull(of(tensors, i), of(out, i), of(cts, i), wanted) for i in range(stack)]  # type: ignore[arg-type]
        return [torch.stack(parts) if w else None for parts, w in zip(zip(*found, strict=True), wanted, strict=True)]

    # ---------------------------------------------------------------- members in one call

    def _ensemble(self, tensors: Tensors, stack: int) -> tuple[Tensor, ...]:
        ensemble, (given, own, lengths) = self.cell.ensemble, self._parts(tensors)
        assert ensemble is not None
        first = self._of(given, 0)
        shape, x, call, weight = shapes_of(self.call, first)[0], given[0], self.call, None
        assert x is not None
        if through_matrix(call, first, self._of(own, 0), self.place):
            count = max([t.shape[0] for t in own if t is not None])
            weight, w = room((count, shape[2], shape[2]), x.dtype)
            _core.operator_matrix(call.stem, arrays(_full(own, count)), w, False, self.place)
            weight = weight.expand(stack, *weight.shape[1:]).contiguous()
            call, own = call._replace(stem="dense"), (weight,)
        states, h = room((stack, *shape), x.dtype)
        ensemble.forward(call, stack, arrays(_full(own, stack)), arrays(given), ends(lengths), h, self.place)
        empty = states.new_empty((stack, 0))
        return states, empty, empty.clone() if weight is None else weight

    def _ensemble_pull(
        self, tensors: Tensors, out: Sequence[Tensor], cts: Tensors, wanted: Sequence[bool], stack: int
    ) -> Tensors:
        ensemble, (given, own, lengths), call = self.cell.ensemble, self._parts(tensors), self.call
        assert ensemble is not None
        states, _, weight = out
        own, count = _full(own, stack), self.count
        grads, bars = rooms(wanted[:count], _full(given, stack))
        own_grads, own_bars = rooms(wanted[count:-1], own)
        steps: Tensors = own
        step_bars: tuple[Array | None, ...] = own_bars
        w_bar: Tensor | None = None
        if weight.numel():
            call, steps, step_bars = call._replace(stem="dense"), (weight,), (None,)
            if any(wanted[count:]):
                w_bar, bar = room(weight.shape, weight.dtype)
                step_bars = (bar,)
        last = ends(lengths), *arrays((states, cts[0])), bars, step_bars, self.place
        ensemble.backward(call, stack, arrays(steps), arrays(given), *last)
        if w_bar is not None:
            _core.operator_matrix_vjp(self.call.stem, arrays(own), None, to_kernel(w_bar), own_bars, self.place)
        return [*grads, *own_grads, None]


def _full(tensors: Tensors, stack: int) -> list[Tensor | None]:
    """The tensors, each with all its members."""
    return [None if t is None else t.expand(stack, *t.shape[1:]) for t in tensors]
