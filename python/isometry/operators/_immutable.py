"""What the operators of the package share: attributes cannot be set, and hooks return the matrix and its gradient."""

from __future__ import annotations

from typing import NoReturn, TypeVar

from numpy.typing import ArrayLike

from isometry import gpu
from isometry._arrays import Array, DType, common, field_of_result, finite, stacked, taken
from isometry._backend import Place, serve
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
        raise AttributeError(f"{name} cannot be set: {check.article(type(self).__name__)} is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name} cannot be deleted: {check.article(type(self).__name__)} is immutable")

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Array:
        self._check_held(check.flag("check_finite", check_finite))
        return self._matrices(self.dtype, serve(backend)).reshape((*self.batch_shape, *self.shape))

    def matrix_vjp(self, ct: ArrayLike, *, backend: str | None = None, check_finite: bool = True) -> Gradients:
        place = serve(backend)
        if place == "gpu":
            ct = _calls.single(ct)
        check_finite = check.flag("check_finite", check_finite)
        ct = taken("ct", ct)
        check.exact("ct", ct.shape, (*self.batch_shape, *self.shape))
        field_of_result("ct", ct, self.dtype)
        self._check_held(check_finite)
        if check_finite:
            finite("ct", ct)
        dtype = common(self.dtype, ct)
        if place == "gpu":
            _calls.fits(dtype, ct=ct)
        return self._pull_matrices(None, stacked(ct, 2, self.batch_shape, dtype), place)


class Combined(Immutable):
    """An operator made from others, with the hooks `_formed` and `_pull_formed`.

    It acts on rows on the GPU if its operators do; the CPU forms its matrix from copies of arrays that are on the GPU.
    """

    __slots__ = ()

    def _formed(self, dtype: DType, place: Place) -> Array:
        """W as (nb, n_out, n_in)."""
        raise NotImplementedError

    def _pull_formed(self, w: Array | None, w_bar: Array, place: Place) -> Gradients:
        """The gradients of the arguments from the gradient of W, given W."""
        raise NotImplementedError

    def _matrices(self, dtype: DType, place: Place) -> Array:
        if place == "gpu" and _calls.resident(*self._members()):
            return gpu.Array(self._local()._matrices(dtype, serve("cpu")))  # type: ignore[return-value]
        return self._formed(dtype, place)

    def _pull_matrices(self, w: Array | None, w_bar: Array, place: Place) -> Gradients:
        if place == "gpu" and _calls.resident(w_bar, *self._members()):
            here = w_bar.download() if type(w_bar) is gpu.Array else w_bar
            return _calls.sent(self._local()._pull_matrices(None, here, serve("cpu")))
        return self._pull_formed(w, w_bar, place)
