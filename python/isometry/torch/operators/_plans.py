"""The two calls of an object, made from its declaration: its matrix, and rows W x or W^H x.

Arguments come with no batch or with one batch axis, all of one dtype and its real type.
"""

# ruff: noqa: ARG002  the interface of `Plan`

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ... import _core
from ..._backend import Place
from ..._objects._declaration import Declaration
from ..._objects.dense import DENSE
from .. import formulas
from .._dispatch.function import COMPLEX_OF, arrays, empty, empty_gradients, place, readable, trained_only
from .._dispatch.graph import custom_operators
from .._dispatch.plan import Flags, Out, Plan, Results, Rows, Saved, Tensors

# From this many numbers in the first argument on, saving for backward is cheaper than recomputing.
_LARGE = 1024
# Up to this many bytes the context holds a call's own array, which costs less; torch frees a saved tensor earlier.
_HELD = 1 << 14

Shape = tuple[int, ...]


class _Object(Plan):
    place = staticmethod(place)
    spare = True

    def __init__(self, name: str, declaration: Declaration, formula: Callable[..., Tensor]) -> None:
        self.declaration, self.stem, self.of_arguments = declaration, declaration.stem, formula
        self.learned = tuple([argument.trained for argument in declaration.arguments])
        self.all_learned, self.rank = all(self.learned), declaration.arguments[0].rank
        super().__init__(declaration.name + name)

    def trained(self, settings: Any, recorded: Flags) -> Flags:
        return recorded if self.all_learned else trained_only(recorded, self.learned)


class Matrix(_Object):
    """W, from the arguments; the settings are its shape without a stack."""

    operators = custom_operators(
        "matrix", "str stem, SymInt[] shape", lambda stem, shape: (BY_STEM[stem].matrix, tuple(shape))
    )

    def __init__(self, declaration: Declaration, formula: Callable[..., Tensor]) -> None:
        self.always, self.turns, self.lead_at = declaration.saves_matrix, declaration.turns, declaration.lead
        super().__init__("Matrix", declaration, formula)

    def run(self, settings: Any, tensors: Tensors, saving: bool, at: Place) -> tuple[Results, Saved]:
        first = tensors[0]
        batch = first.dim() - self.rank
        shape = (*first.shape[:batch], *settings) if batch else settings
        out, w = empty(shape, self.dtype(tensors))
        saving = saving and (self.always or first.numel() >= _LARGE)
        saved = _core.operator_matrix(self.stem, arrays(tensors), w, saving, at)
        return (out,), () if saved is None or saved is w else (torch.from_numpy(saved),)

    def pull(self, settings: Any, tensors: Tensors, out: Out, wanted: Flags, at: Place) -> Tensors:
        results, saved, cts = out
        grads, bars = empty_gradients(wanted, tensors)
        start = results or saved
        kept = readable(start[0]) if start and start[0] is not None else None
        _core.operator_matrix_vjp(self.stem, arrays(tensors), kept, readable(cts[0]), bars, at)
        return grads

    def formula(self, settings: Any, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        return (self.of_arguments(*tensors),)

    def kept(self, settings: Any, results: Tensors) -> Tensors:
        return results if self.always else ()

    def encoded(self, settings: Any) -> Any:
        return self.stem, settings

    def dtype(self, tensors: Tensors) -> torch.dtype:
        """The type of W, from arguments that have been converted to it: that of the first array of the matrix's type;
        where the object has none, that of its first array, complex if angles are given."""
        own: torch.dtype = tensors[self.lead_at].dtype
        if not self.turns:
            return own
        turned = any([tensors[i] is not None for i in self.turns])  # noqa: C419  torch.compile
        return COMPLEX_OF[own] if turned else own

    def shapes(self, settings: Any, tensors: Tensors, saving: bool) -> tuple[Shape]:
        first = tensors[0]
        batch = first.dim() - self.rank
        return ((*first.shape[:batch], *settings) if batch else settings,)


class Apply(_Object):
    """Rows W x or W^H x, from x and the arguments; the settings are `adjoint`, and the features of the result."""

    operators = custom_operators(
        "apply", "str stem, bool adjoint, SymInt features", lambda stem, *settings: (BY_STEM[stem].apply, settings)
    )

    def __init__(self, declaration: Declaration, formula: Callable[..., Tensor]) -> None:
        super().__init__("Apply", declaration, formula)
        self.learned = (True, *self.learned)

    def run(self, settings: Any, tensors: Tensors, saving: bool, at: Place) -> tuple[Results, Saved]:
        adjoint, features = settings
        x, read = tensors[0], arrays(tensors)
        shape = x.shape
        out, c = empty(shape if shape[-1] == features else (*shape[:-1], features), x.dtype)
        saved = _core.operator_apply(self.stem, read[1:], read[0], c, adjoint, saving, at)
        kept = () if saved is None else (saved if saved.nbytes <= _HELD else torch.from_numpy(saved),)
        return (out,), kept

    def pull(self, settings: Any, tensors: Tensors, out: Out, wanted: Flags, at: Place) -> Tensors:
        _, saved, cts = out
        grads, (x_bar, *bars) = empty_gradients(wanted, tensors)
        x, *arguments = arrays(tensors)
        start = saved[0] if saved else None
        read = tuple(arguments), readable(start) if isinstance(start, Tensor) else start, x, readable(cts[0])
        _core.operator_apply_vjp(self.stem, *read, tuple(bars), x_bar, settings[0], at)
        return grads

    def formula(self, settings: Any, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        x, *arguments = tensors
        return (self.of_arguments(*arguments, x, settings[0]),)

    def encoded(self, settings: Any) -> Any:
        return self.stem, *settings

    def stack(self, tensors: Tensors) -> int | None:
        return super().stack(tensors[1:])

    def rows(self, settings: Any, batched: Sequence[int], tensors: Tensors) -> Rows | None:
        return Rows((0, *(None,) * (len(tensors) - 1)), (0, None), False) if list(batched) == [0] else None

    def shapes(self, settings: Any, tensors: Tensors, saving: bool) -> tuple[Shape]:
        return ((*tensors[0].shape[:-1], settings[1]),)


class Calls(NamedTuple):
    """The calls of an object."""

    matrix: Matrix
    apply: Apply


#: By the stem of the object, which names it in a graph.
BY_STEM: dict[str, Calls] = {}


def calls(declaration: Declaration, matrix: Callable[..., Tensor], apply: Callable[..., Tensor] | None = None) -> Calls:
    """The calls of an object whose matrix has that formula; it is applied by `apply`, or through its matrix."""

    def through_matrix(*tensors: Any) -> Tensor:
        *arguments, x, adjoint = tensors
        return formulas.dense.apply(matrix(*arguments), x, adjoint)

    made = Calls(Matrix(declaration, matrix), Apply(declaration, apply or through_matrix))
    BY_STEM.setdefault(declaration.stem, made)
    return made


#: The calls that apply any operator through its matrix.
THROUGH_MATRIX = calls(DENSE, formulas.dense.matrix, formulas.dense.apply)
