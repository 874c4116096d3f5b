"""The kernel calls of an object inside torch.func: its matrix, and rows W x or W^H x, for one operator or a stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from ... import _core
from ..._objects._declaration import Declaration
from .._function import Array, arrays, given, place, room, rooms, trained_only
from .._transforms import Plan, Rows, Tensors
from ._types import type_of


class _Calls(Plan):
    """Of a declared object; every argument has the axis of the stack."""

    spare = True

    def __init__(
        self, declaration: Declaration, formula: Callable[..., Tensor], backend: str | None, arguments: Tensors
    ) -> None:
        self.declaration, self.of_arguments, self.place = declaration, formula, place(backend)
        self.count = len(arguments)
        first = arguments[0]
        assert first is not None
        self.stack = first.shape[0] if first.dim() > declaration.arguments[0].rank else None

    def asked(self, wanted: Sequence[bool]) -> tuple[bool, ...]:
        return trained_only(wanted, tuple([argument.trained for argument in self.declaration.arguments]))

    def over(self, stack: int | None) -> Self:
        made = self.__new__(type(self))
        made.__dict__.update(self.__dict__, stack=stack)
        return made

    def _full(self, tensors: Tensors) -> list[Tensor | None]:
        """The tensors, each with all its members."""
        stack = self.stack
        return [t if t is None or stack is None else t.expand(stack, *t.shape[1:]) for t in tensors]

    def _kept(self, saved: Array | None, out: Tensor, w: Array) -> tuple[Tensor, ...]:
        """What a kernel saved for backward: an array, its result (empty), or nothing."""
        if saved is None:
            return ()
        kept = out.new_empty(0) if saved is w else torch.as_tensor(saved)
        return (kept if self.stack is None else kept.reshape(self.stack, -1),)

    def _start(self, out: Sequence[Tensor]) -> Array | None:
        """The array from which backward starts."""
        return None if len(out) == 1 else given(out[1] if out[1].numel() else out[0])


class Matrix(_Calls):
    """W, from the arguments."""

    def __init__(self, shape: tuple[int, int], *given: Any) -> None:
        super().__init__(*given)
        self.shape = shape

    def run(self, tensors: Tensors) -> tuple[Tensor, ...]:
        full = self._full(tensors)
        shape = self.shape if self.stack is None else (self.stack, *self.shape)
        out, w = room(shape, type_of(self.declaration, full))
        return out, *self._kept(_core.operator_matrix(self.declaration.stem, arrays(full), w, True, self.place), out, w)

    def pull(self, tensors: Tensors, out: Sequence[Tensor], cts: Tensors, wanted: Sequence[bool]) -> Tensors:
        full, ct = self._full(tensors), cts[0]
        assert ct is not None
        grads, bars = rooms(wanted, full)
        _core.operator_matrix_vjp(self.declaration.stem, arrays(full), self._start(out), given(ct), bars, self.place)
        return grads

    def member(self, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        return (self.of_arguments(*tensors),)


class Apply(_Calls):
    """Rows W x or W^H x, from x and the arguments."""

    def __init__(self, adjoint: bool, features: int, *given: Any) -> None:
        super().__init__(*given)
        self.adjoint, self.features = adjoint, features

    def asked(self, wanted: Sequence[bool]) -> tuple[bool, ...]:
        return wanted[0], *super().asked(wanted[1:])

    def run(self, tensors: Tensors) -> tuple[Tensor, ...]:
        x, *own = self._full(tensors)
        assert x is not None
        out, c = room((*x.shape[:-1], self.features), x.dtype)
        saved = _core.operator_apply(self.declaration.stem, arrays(own), given(x), c, self.adjoint, True, self.place)
        return out, *self._kept(saved, out, c)

    def pull(self, tensors: Tensors, out: Sequence[Tensor], cts: Tensors, wanted: Sequence[bool]) -> Tensors:
        full, ct = self._full(tensors), cts[0]
        grads, (x_bar, *bars) = rooms(wanted, full)
        x, *own = full
        assert ct is not None and x is not None
        start = self._start(out) if len(out) > 1 else None
        last = given(x), given(ct), tuple(bars), x_bar, self.adjoint, self.place
        _core.operator_apply_vjp(self.declaration.stem, arrays(own), start, *last)
        return grads

    def member(self, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        x, *own = tensors
        return (self.of_arguments(*own, x, self.adjoint),)

    def rows(self, batched: Sequence[int]) -> Rows | None:
        if list(batched) != [0]:
            return None
        return Rows((0, *(None,) * self.count), (0, None), False)
