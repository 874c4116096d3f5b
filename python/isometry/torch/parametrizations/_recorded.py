"""B f(A) of a square real X by the kernels, forward and backward one operation of autograd. The operations of torch
that `_maps` has between the kernels take as long as these.
"""

# ruff: noqa: ARG002  the interface of `Plan`

from typing import Any

from torch import Tensor

from ... import _core
from .._dispatch.function import empty, place, readable
from .._dispatch.plan import Flags, Out, Plan, Results, Saved, Tensors
from ..formulas._precision import full_precision
from ..operators import Cayley, Exponential
from ._square import matrices

#: The operator of a map, and the factor of A in it.
OPERATORS: dict[str, tuple[Any, float]] = {"cayley": (Cayley, -0.5), "matrix_exp": (Exponential, 1.0)}


def serves(name: str, x: Tensor, base: Tensor | None) -> bool:
    """Whether these tensors have this operation: no packed base, nor one whose gradient is recorded."""
    square = name in OPERATORS and x.shape[-1] == x.shape[-2] > 1 and not x.is_complex() and x.numel() > 0
    return square and (base is None or not base.requires_grad)


class Weight(Plan):
    """W from X and the base, or None; the settings are the name of the map, and the formula of both tensors."""

    place = staticmethod(place)

    def run(self, settings: Any, tensors: Tensors, saving: bool, at: Any) -> tuple[Results, Saved]:
        (kind, factor), (x, base) = OPERATORS[settings[0]], tensors
        n, stack = x.shape[-1], matrices(x)
        upper, room = empty((len(stack), n * (n - 1) // 2), x.dtype)
        _core.triangle(readable(stack), room, -factor, False)
        (w,), saved = kind._calls.matrix.run((n, n), _given(kind, upper), saving, at)
        result = w.view(x.shape)
        return (result if base is None else _product(base, result),), (upper, w, *saved)

    def pull(self, settings: Any, tensors: Tensors, out: Out, wanted: Flags, at: Any) -> Tensors:
        (kind, factor), (x, base) = OPERATORS[settings[0]], tensors
        (upper, w, *saved), (along,), plan = out[1], out[2], kind._calls.matrix
        along = along if base is None else _product(base.mT, along)
        given, shape = _given(kind, upper), x.shape[-2:]
        read = plan.kept(shape, (w,)), saved, (matrices(along),)
        bar = plan.pull(shape, given, read, [t is upper for t in given], at)[0]
        grad, room = empty(matrices(x).shape, x.dtype)
        _core.triangle(room, readable(bar), -factor, True)
        return grad.view(x.shape), None

    def formula(self, settings: Any, *tensors: Any) -> Results:
        return settings[1](*tensors)  # type: ignore[no-any-return]


WEIGHT = Weight("Weight")


def _given(kind: Any, upper: Tensor) -> tuple[Tensor | None, ...]:
    """The arguments of the operator."""
    return upper, *(None,) * (len(kind._declaration.arguments) - 1)


@full_precision
def _product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b
