"""Operators made from a declaration: they hold its arguments, check them when built, and act by the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.compiler import is_compiling

from ... import _core, _determinants
from ..._objects._declaration import Argument, Declaration
from ..._objects._held import Held
from ..._rules import check, check_expression
from ..._rules.expression import sizes
from ..._rules.index import Key, picked
from .._dispatch.function import COMPLEX_OF, REAL_OF, array, dtype_name, readable
from .._dispatch.mode import GRAPH, KERNEL, RECORDED, WITHOUT_KERNELS, Mode, mode, symbolic, visible
from .._dispatch.results import computed
from ._expressions import kind_of
from ._operator import Arguments, Operator, beside, integers, real_tensor, stacked, tensor
from ._plans import Calls, calls


class Declared(Held, Operator):
    """An operator of the package. Immutable, but changing an array in place changes the operator."""

    __slots__ = ("_arrays", "_ready")

    _stack = staticmethod(torch.stack)
    _calls: ClassVar[Calls]
    _arrays: Arguments
    _ready: bool  # a kernel takes the arguments as they are

    def __init_subclass__(
        cls,
        *,
        declaration: Declaration | None = None,
        matrix: Callable[..., Tensor] | None = None,
        apply: Callable[..., Tensor] | None = None,
    ) -> None:
        if declaration is None or matrix is None:  # a user's subclass of an object
            return
        cls._declare(declaration)
        cls._calls = calls(declaration, matrix, apply)

    def _hold(self, *values: Any) -> None:
        """Take and check the arguments, and set all attributes."""
        declaration = self._declaration
        nones = values[1:]
        alone = declaration.alone and values and not any(value is not None for value in nones)
        if alone and self._hold_one(values[0], len(nones)):
            return
        arguments = declaration.flat(len(values))
        given: list[Tensor | None] = []
        held, name, turned = None, "", False  # the first argument that has a precision; whether W is complex
        for i, (argument, value) in enumerate(zip(arguments, values, strict=True)):
            t: Tensor | None = None
            if argument.kind == "shape":
                t = value if isinstance(value, Tensor) else None
            elif value is None and i >= declaration.required:
                pass
            elif argument.integer:
                beside_it = value if held is None else held
                t = integers(argument.name, value, getattr(beside_it, "device", torch.device("cpu")))
            elif held is None:
                held = t = tensor(argument.name, value)
                name = argument.name
                if argument.real:
                    check.real(name, dtype_name(held.dtype))
            elif argument.real:
                t = real_tensor(argument.name, value, name, held.dtype)
            else:
                t = beside(argument.name, value, name, held.dtype)
            if t is not None:
                turned = turned or argument.angles or t.is_complex()
                if argument.kind == "complex":
                    check.complex_only(argument.name, dtype_name(t.dtype))
            given.append(t)
        shapes = [a.given(v, t) for a, v, t in zip(arguments, values, given, strict=True)]
        bind = declaration.check if symbolic() else declaration.known
        self._shape, self._batch_shape = bind(*shapes)  # type: ignore[operator]
        assert held is not None
        self._dtype = COMPLEX_OF[held.dtype] if turned else held.dtype
        for i, argument in enumerate(arguments):
            if argument.kind == "shape" and given[i] is None:
                given[i] = held.new_empty(shapes[i], dtype=self._dtype)  # type: ignore[arg-type]
        if declaration.checked:
            self._check_values(given)
        if held.device.type != "cpu":  # a Python number moves to the device of the first array
            given = [
                real_tensor(name, value, name, held.dtype, held.device)
                if isinstance(value, (int, float)) and t is not None and t.is_floating_point()
                else t
                for t, value in zip(given, values, strict=True)
            ]
        self._arrays = tuple(given)
        self._ready = (
            self._batch_shape == ()
            and not is_compiling()
            and all(t is None or _dense(t) or a.kind == "shape" for t, a in zip(given, self._flat, strict=True))
            and all(t is None or not a.own or t.dtype is self._dtype for t, a in zip(given, self._flat, strict=True))
        )

    @property
    def _flat(self) -> tuple[Argument, ...]:
        """The argument that each tensor belongs to."""
        return self._declaration.flat(len(self._arrays))

    def _hold_one(self, first: Any, missing: int) -> bool:
        """`_hold` of a first argument alone, if it is an ordinary tensor of a single operator."""
        if (type(first) is not Tensor and type(first) is not torch.nn.Parameter) or symbolic():
            return False
        if first.dtype not in REAL_OF or first.layout is not torch.strided:
            return False
        nones = (None,) * missing
        self._shape, self._batch_shape = self._declaration.known(first.shape, *nones)  # type: ignore[operator]
        self._dtype = first.dtype
        self._arrays = (first, *nones)
        if self._declaration.first_checked and first.numel() and visible(first):
            _core.operator_check(self._declaration.stem, (readable(first), *nones))
        self._ready = self._batch_shape == () and _dense(first)
        return True

    def _check_values(self, given: list[Tensor | None]) -> None:
        """Refuse values that the definition forbids, where they can be read; NaN passes. A constructor checks its
        numbers. A checked argument of kind "shape" carries sizes for the check of values.
        """
        checked = self._declaration.checked
        seen = [
            array(t)
            if t is not None
            and a.kind != "number"
            and (t.numel() or a.kind == "shape")
            and a.name in checked
            and visible(t)
            else None
            for a, t in zip(self._declaration.flat(len(given)), given, strict=True)
        ]
        if any(t is not None for t in seen):
            _core.operator_check(self._declaration.stem, tuple(seen))

    def arguments(self, dtype: torch.dtype) -> Arguments:
        """The arguments, those of the matrix's type in the given dtype, with no batch axis or a single one."""
        batch = self._batch_shape
        if self._ready and self._dtype is dtype:
            return self._arrays
        made = []
        for argument, t in zip(self._flat, self._arrays, strict=True):
            if t is not None:
                t = t if not argument.own or t.dtype is dtype else t.to(dtype)
                t = stacked(t, batch, argument.rank) if batch else t
            made.append(t)
        return tuple(made)

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Tensor:
        if backend is not None:
            check.backend(backend)
        if check_finite is not True:
            check.flag("check_finite", check_finite)
        if self._ready:
            how = mode(*self._arrays)
            if how is KERNEL or how is RECORDED:
                return self._formed(how, self._arrays, backend)
        w = self._matrix(self.arguments(self._dtype), backend)
        return w.reshape(*self._batch_shape, *self._shape) if self._batch_shape else w

    def _matrix(self, arguments: Arguments, backend: str | None) -> Tensor:
        """W, shape (n_out, n_in), or (nb, n_out, n_in) for a stack."""
        how = mode(*arguments)
        if how in WITHOUT_KERNELS or (how is not GRAPH and self._vacant(arguments)):
            return self._by_formula(arguments)
        return self._formed(how, arguments, backend)

    def _formed(self, how: Mode, arguments: Arguments, backend: str | None) -> Tensor:
        """`_matrix` by the kernel."""
        return computed(self._calls.matrix, how, backend, self._shape, arguments)[0]

    def _by_formula(self, arguments: Arguments) -> Tensor:
        """W by the formula."""
        return self._calls.matrix.of_arguments(*arguments)

    def _act(self, x: Tensor, adjoint: bool, backend: str | None, columns: bool = False) -> Tensor:
        # The common case first: rows that a kernel takes as they are.
        if (
            self._ready
            and backend is None
            and isinstance(x, Tensor)
            and x.dtype is self._dtype
            and _dense(x)
            and x.dim()
            and x.shape[-1] == self._shape[0 if adjoint else 1]
        ):
            how = mode(x, *self._arrays)
            if how is KERNEL or how is RECORDED:
                settings = adjoint, self._shape[1 if adjoint else 0]
                return computed(self._calls.apply, how, None, settings, (x, *self._arrays))[0]
        return super()._act(x, adjoint, backend, columns)

    def _rows(self, x: Tensor, adjoint: bool, backend: str | None) -> Tensor:
        arguments = self.arguments(self._dtype)
        how = mode(x, *arguments)
        if how in WITHOUT_KERNELS or (how is not GRAPH and (not x.numel() or self._vacant(arguments))):
            return self._rows_by_formula(arguments, x, adjoint)
        settings = adjoint, self._shape[1 if adjoint else 0]
        return computed(self._calls.apply, how, backend, settings, (x, *arguments))[0]

    def _factors(self, dtype: torch.dtype) -> tuple[str, Arguments] | None:
        arguments = self.arguments(dtype)
        return (self._declaration.stem, arguments) if is_compiling() or not self._vacant(arguments) else None

    def _vacant(self, arguments: Arguments) -> bool:
        """Whether an argument that has a gradient has no elements."""
        given = zip(self._flat, arguments, strict=True)
        return any(t is not None and not t.numel() and a.kind != "shape" for a, t in given)

    def _rows_by_formula(self, arguments: Arguments, x: Tensor, adjoint: bool) -> Tensor:
        """W x or W^H x by the formula."""
        return self._calls.apply.of_arguments(*arguments, x, adjoint)

    def _determinant(self, backend: str | None) -> Tensor:
        complex_ = self._arrays[0].is_complex()  # type: ignore[union-attr]
        found: Tensor | None = _determinants.of_arguments(torch, self._declaration, self._arrays, complex_)
        return super()._determinant(backend) if found is None else found

    # -------------------------------------------------------- expressions

    def _unitary(self, always: bool) -> bool:
        """A sign whose value cannot be read counts as +-1."""
        if not (self._declaration.unitary if always else self._declaration.signed):
            return False
        loose = [a.name in self._declaration.loose for a in self._flat]
        given = [t for t, free in zip(self._arrays, loose, strict=True) if free and t is not None]
        return all([not visible(t) or bool((t.abs() == 1).all()) for t in given])  # noqa: C419  torch.compile

    def _parts(self) -> list[str]:
        shapes = [None if t is None else tuple(t.shape) for t in self._arrays]
        parts = [*sizes(self._declaration, shapes), *self._common_parts()]
        return parts if self.device.type == "cpu" else [*parts, f"device='{self.device}'"]

    def _picked(self, key: Key) -> Self:
        return self._remade(
            lambda argument, t: picked(t, tuple(t.shape[: t.dim() - argument.rank]), key, torch.from_numpy)
        )

    @property
    def device(self) -> torch.device:
        """Where the arguments are: on the device of the first."""
        first = self._arrays[0]
        assert first is not None
        return first.device

    @property
    def requires_grad(self) -> bool:
        """Whether one of the arguments requires its gradient."""
        return any(t is not None and t.requires_grad for t in self._arrays)

    def detach(self) -> Self:
        return self._remade(lambda _, t: t.detach())

    def _moved(self, dtype: torch.dtype | None, device: torch.device | None) -> Self:
        if dtype is not None and self._declaration.real:
            check_expression.real_law(type(self).__name__, dtype_name(dtype))

        def moved(argument: Argument, t: Tensor) -> Tensor:
            t = t if dtype is None or argument.integer else t.to(kind_of(self._dtype, t.dtype, dtype, argument.real))
            return t if device is None else t.to(device)

        return self._remade(moved)


def _dense(t: Tensor) -> bool:
    """Whether a kernel can read the values, after a copy at most."""
    return t.layout is torch.strided and t.numel() > 0
