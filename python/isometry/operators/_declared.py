"""Operators made from a declaration: they hold its arguments, check them when built, and act by the kernels."""

from __future__ import annotations

from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from isometry import _core, _determinants, gpu
from isometry._arrays import (
    INT64,
    Array,
    DType,
    common,
    finite,
    gradient,
    ready,
    real_type,
    stacked,
    taken,
    taken_integers,
    taken_real,
)
from isometry._backend import Place
from isometry._objects._declaration import Argument, Declaration
from isometry._objects._held import Held
from isometry._rules import check, check_expression
from isometry._rules.check import Shape
from isometry._rules.expression import converted, sizes
from isometry._rules.index import Key, picked
from isometry.gpu import _calls
from isometry.operators._immutable import Immutable
from isometry.operators._operator import Gradients, Room
from isometry.operators._random import field

#: Arrays of shape (nb, ...), one per argument in the order of the declaration; None where not given or not wanted.
Folded = tuple[Any, ...]


class Declared(Held, Immutable):
    """An operator of the package: immutable, with references to the arrays it was built from."""

    __slots__ = ("_arrays", "_finite", "_flat")

    _stack = staticmethod(np.stack)

    _arrays: tuple[Array | None, ...]
    _finite: bool
    _flat: tuple[Argument, ...]  # the argument that each array belongs to

    def __init_subclass__(cls, *, declaration: Declaration | None = None) -> None:
        if declaration is None:  # a user's subclass of an object
            return
        cls._declare(declaration)

    def _hold(self, *values: Any) -> None:
        """Take and check the arguments, and set all attributes."""
        declaration, nones = self._declaration, values[1:]
        if declaration.alone and values and not any([value is not None for value in nones]):  # noqa: C419  the common case, counted in microseconds
            first = taken(declaration.arguments[0].name, values[0])
            shape, batch_shape = declaration.known(first.shape, *nones)  # type: ignore[operator]
            if declaration.first_checked and type(first) is not gpu.Array:
                _core.operator_check(declaration.stem, (ready(first, first.dtype), *nones))
            self._set(shape, batch_shape, first.dtype, (first, *nones), declaration.flat(len(values)))
            return
        arguments = declaration.flat(len(values))
        arrays: list[Array | None] = [None] * len(values)
        for i, (argument, value) in enumerate(zip(arguments, values, strict=True)):
            if argument.kind == "shape":
                arrays[i] = None if isinstance(value, tuple) else value
            elif value is not None or i < declaration.required:
                arrays[i] = _taken(argument, value, arrays[0])
        shapes = [t.given(value, a) for t, value, a in zip(arguments, values, arrays, strict=True)]
        shape, batch_shape = declaration.known(*shapes)  # type: ignore[operator]
        dtype = promoted(arguments, arrays)
        for i, argument in enumerate(arguments):
            if argument.kind == "shape" and arrays[i] is None:
                arrays[i] = np.empty(values[i], dtype)
        if declaration.checked:
            self._check_values(arrays, dtype)
        self._set(shape, batch_shape, dtype, tuple(arrays), arguments)

    def _set(
        self,
        shape: tuple[int, int],
        batch_shape: Shape,
        dtype: DType,
        arrays: tuple[Array | None, ...],
        arguments: tuple[Argument, ...],
    ) -> None:
        put = object.__setattr__
        put(self, "shape", shape)
        put(self, "batch_shape", batch_shape)
        put(self, "dtype", dtype)
        put(self, "_finite", False)
        put(self, "_arrays", arrays)
        put(self, "_flat", arguments)

    def _check_values(self, arrays: list[Array | None], dtype: DType) -> None:
        """Refuse values that the definition forbids."""
        checked = self._declaration.checked
        first = arrays[self._declaration.lead]
        own = dtype if first is not None and first.dtype.kind == "c" else real_type(dtype)
        seen = tuple(
            ready(a, _type(t, own)) if a is not None and t.name in checked and type(a) is not gpu.Array else None
            for t, a in zip(self._declaration.flat(len(arrays)), arrays, strict=True)
        )
        if any(a is not None for a in seen):
            _core.operator_check(self._declaration.stem, seen)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._arrays)

    # -------------------------------------------------------- folded arrays

    def _check_held(self, check_finite: bool) -> None:
        if check_finite and not self._finite:
            for argument, array in zip(self._flat, self._arrays, strict=True):
                if array is not None and not argument.integer:
                    finite(argument.name, array)
            object.__setattr__(self, "_finite", True)

    def _parameters(self, dtype: DType) -> Folded:
        """The arguments for arithmetic in dtype, broadcast to the batch and folded to (nb, ...) unless they already
        fit."""
        if self.batch_shape == ():
            given = zip(self._flat, self._arrays, strict=True)
            return tuple([None if a is None else ready(a, _type(t, dtype)) for t, a in given])
        return tuple(
            None if a is None else stacked(a, t.rank, self.batch_shape, _type(t, dtype))
            for t, a in zip(self._flat, self._arrays, strict=True)
        )

    def _bars(self, p: Folded, resident: bool = False) -> Folded:
        """Uninitialised gradients of the trainable arguments that were given."""
        empty = gpu.Array.like if resident else np.empty_like
        given = zip(self._flat, p, strict=True)
        return tuple(empty(a) if t.trained and a is not None else None for t, a in given)

    def _gradients(self, bars: Folded) -> Gradients:
        """The gradients under the arguments' names, in the arguments' shapes and dtypes."""
        result: Gradients = {}
        for argument, own, bar in zip(self._flat, self._arrays, bars, strict=True):
            if bar is not None and own is not None:
                core = bar.shape[bar.ndim - argument.rank :]
                grad = gradient(bar.reshape((*self.batch_shape, *core)), own.shape, own.dtype)
                if argument.list:
                    result.setdefault(argument.name, []).append(grad)
                else:
                    result[argument.name] = grad
        return result

    # -------------------------------------------------------- hooks

    def _members(self) -> tuple[Any, ...]:
        return self._arrays

    def _act(self, x: Array, out: Array, adjoint: bool, place: Place) -> None:
        p = self._parameters(x.dtype)
        _core.operator_apply(self._declaration.stem, p, x, out, adjoint, False, place)

    def _pull(self, x: Array, ct: Array, x_bar: Array, adjoint: bool, place: Place) -> Gradients:
        p = self._parameters(x.dtype)
        bars = self._bars(p, type(x_bar) is gpu.Array)
        _core.operator_apply_vjp(self._declaration.stem, p, None, x, ct, bars, x_bar, adjoint, place)
        return self._gradients(bars)

    def _matrices(self, dtype: DType, place: Place) -> Array:
        p = self._parameters(dtype)
        empty: Room = gpu.Array.room if place == "gpu" and _calls.resident(*p) else np.empty
        out: Array = empty((prod(self.batch_shape), *self.shape), dtype)
        _core.operator_matrix(self._declaration.stem, p, out, False, place)
        return out

    def _pull_matrices(self, w: Array | None, w_bar: Array, place: Place) -> Gradients:
        p, stem = self._parameters(w_bar.dtype), self._declaration.stem
        bars = self._bars(p, place == "gpu" and _calls.resident(w_bar, *p))
        saved = w if self._declaration.saves_matrix else None
        _core.operator_matrix_vjp(stem, p, saved, w_bar, bars, place)
        return self._gradients(bars)

    def _local(self) -> Self:
        return self._remade(lambda _, a: a.download() if type(a) is gpu.Array else a)

    def _determinant(self, backend: str | None) -> Any:
        first = self._arrays[0]
        complex_ = first is not None and first.dtype.kind == "c"
        found = _determinants.of_arguments(np, self._declaration, self._arrays, complex_)
        return super()._determinant(backend) if found is None else found

    def _unitary(self, always: bool) -> bool:
        if not (self._declaration.unitary if always else self._declaration.signed):
            return False
        given = zip(self._flat, self._local()._arrays, strict=True)
        return all((np.abs(a) == 1).all() for t, a in given if a is not None and t.name in self._declaration.loose)

    # -------------------------------------------------------- expressions

    def _parts(self) -> list[str]:
        shapes = [None if a is None else a.shape for a in self._arrays]
        return [*sizes(self._declaration, shapes), *self._common_parts()]

    def astype(self, dtype: DTypeLike) -> Self:
        own, target = self.dtype.name, field(dtype).name
        check_expression.conversion(own, target)
        if self._declaration.real:
            check_expression.real_law(type(self).__name__, target)

        def changed(t: Argument, a: Array) -> Array:
            if t.kind in ("number", "integer"):
                return a
            return a.astype(converted(own, a.dtype.name, target, t.real), copy=False)

        return self._remade(changed)

    def _picked(self, key: Key) -> Self:
        return self._remade(lambda t, a: picked(a, a.shape[: a.ndim - t.rank], key))


def _taken(argument: Argument, value: Any, first: Array | None) -> Array:
    """The argument as an array; a Python number takes the precision of the first one."""
    if argument.integer:
        return taken_integers(argument.name, value)
    if argument.own:
        a = taken(argument.name, value)
        if argument.kind == "complex":
            check.complex_only(argument.name, a.dtype.name)
        return a
    if argument.kind == "number":
        return np.array(float(value))
    if first is not None and isinstance(value, (int, float)) and not isinstance(value, np.generic):
        return np.array(check.number(argument.name, value), real_type(first.dtype))
    return taken_real(argument.name, value)


def _type(argument: Argument, dtype: DType) -> DType:
    """The dtype of an argument in arithmetic in the given dtype."""
    return INT64 if argument.integer else real_type(dtype) if argument.real else dtype


def promoted(arguments: tuple[Argument, ...], arrays: list[Array | None]) -> DType:
    """The dtype of W: that of its arrays, complex where angles are given."""
    result = common(*[a for t, a in zip(arguments, arrays, strict=True) if t.kind not in ("number", "integer")])
    for t, a in zip(arguments, arrays, strict=True):
        if t.angles and a is not None:
            return np.result_type(result, np.complex64)
    return result


def _rebuild(cls: type[Declared], arrays: tuple[Array | None, ...]) -> Declared:
    return cls._of(arrays)
