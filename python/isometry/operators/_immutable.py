"""What the operators of the package share: attributes cannot be set, and hooks return the matrix and its gradient."""

from __future__ import annotations

from typing import NoReturn, TypeVar

from numpy.typing import ArrayLike

from isometry._arrays import Array, common, field_of_result, finite, stacked, taken
from isometry._backend import serve
from isometry._rules import check
from isometry.gpu import _calls
from isometry.operators._operator import Gradients, Operator

#: An operator that another is made from.
Op = TypeVar("Op", bound=Operator, covariant=True)


class Immutable(Operator):
    """An operator with the hooks `_matrices` and `_pull_matrices`; its constructor sets the attributes by `_put`."""

    __slots__ = ()

    def _put(self, **attributes: object) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} cannot be set: a {type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name} cannot be deleted: a {type(self).__name__} is immutable")

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Array:
        place = serve(backend)
        if place == "gpu" and _calls.resident(*self._members()):
            return _calls.matrix(self, check.flag("check_finite", check_finite))  # type: ignore[return-value]
        self._check_held(check.flag("check_finite", check_finite))
        return self._matrices(self.dtype, place).reshape((*self.batch_shape, *self.shape))

    def matrix_vjp(self, ct: ArrayLike, *, backend: str | None = None, check_finite: bool = True) -> Gradients:
        place = serve(backend)
        if place == "gpu" and _calls.resident(ct, *self._members()):
            return _calls.matrix_vjp(self, ct, check.flag("check_finite", check_finite))
        check_finite = check.flag("check_finite", check_finite)
        ct = taken("ct", ct)
        check.exact("ct", ct.shape, (*self.batch_shape, *self.shape))
        field_of_result("ct", ct, self.dtype)
        self._check_held(check_finite)
        if check_finite:
            finite("ct", ct)
        return self._pull_matrices(None, stacked(ct, 2, self.batch_shape, common(self.dtype, ct)), place)
