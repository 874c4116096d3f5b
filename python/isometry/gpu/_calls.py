"""Calls of operators where an array is on the GPU: results stay there, and only NumPy arrays are copied.

Arithmetic is in the dtype to which NumPy promotes, float32 or complex64. An object without GPU kernels is applied
through its matrix, which is formed on the CPU.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from isometry import _arrays, _core
from isometry._objects._declaration import Argument
from isometry._rules import check, stacks
from isometry._rules.check import Shape
from isometry.gpu._array import Array

DType = np.dtype[Any]
Gradients = dict[str, Any]

_FLOAT32: DType = np.dtype(np.float32)
_SINGLE = (_FLOAT32, np.dtype(np.complex64))


class Held(NamedTuple):
    """An operator on the GPU: an object of the extension with its arguments, each of shape (nb, ...)."""

    object: str
    arguments: tuple[Any, ...]
    pull: Callable[[list[Any]], Gradients]  # from the gradients of the arguments to those of the operator

    @property
    def wanted(self) -> list[bool]:
        """All gradients."""
        return [True] * len(self.arguments)


class Operator(Protocol):
    """The part of a NumPy operator that is used here."""

    shape: tuple[int, int]
    batch_shape: tuple[int, ...]
    dtype: DType

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Any: ...

    def matrix_vjp(self, ct: Any, *, backend: str | None = None, check_finite: bool = True) -> Gradients: ...

    def _resident(self, dtype: DType, check_finite: bool) -> Held: ...


def resident(*arrays: object) -> bool:
    """Whether one of the arrays is on the GPU."""
    return any(type(a) is Array for a in arrays)


def apply(operator: Operator, x: Any, adjoint: bool, check_finite: bool) -> Array:
    """W x or W^H x of rows."""
    x = single("x", x, check_finite)
    dtype = promoted(operator, x)
    held = operator._resident(dtype, check_finite)
    rows = _rows("x", operator, x, adjoint, dtype)
    out = _core.gpu_operator_apply(held.object, held.arguments, rows, adjoint)
    return Array.of(out).reshape((*x.shape[:-1], operator.shape[adjoint]))


def apply_vjp(
    operator: Operator, name: str, x: Any, ct: Any, adjoint: bool, check_finite: bool
) -> tuple[Gradients, Array]:
    """The gradients of the arguments and of x."""
    x, ct = single(name, x, check_finite), single("ct", ct, check_finite)
    dtype = promoted(operator, x)
    check.field_of_result("ct", ct.dtype.name, dtype.name)
    held = operator._resident(dtype, check_finite)
    rows = _rows(name, operator, x, adjoint, dtype)
    ct_rows = _rows("ct", operator, ct, not adjoint, dtype)
    found = _core.gpu_operator_apply_vjp(held.object, held.arguments, rows, ct_rows, adjoint, held.wanted, True)
    bars, x_bar = found
    return held.pull(bars), own_form(x_bar, x.shape, x)


def matrix(operator: Operator, check_finite: bool) -> Array:
    """W."""
    held = operator._resident(promoted(operator), check_finite)
    out = _core.gpu_operator_matrix(held.object, held.arguments)
    return Array.of(out).reshape((*operator.batch_shape, *operator.shape))


def matrix_vjp(operator: Operator, ct: Any, check_finite: bool) -> Gradients:
    """The gradients of the arguments from that of W."""
    ct = single("ct", ct, check_finite)
    dtype = promoted(operator)
    check.exact("ct", ct.shape, (*operator.batch_shape, *operator.shape))
    check.field_of_result("ct", ct.dtype.name, dtype.name)
    held = operator._resident(dtype, check_finite)
    folded = uploaded("ct", ct, dtype).reshape((prod(operator.batch_shape), *operator.shape))
    return held.pull(_core.gpu_operator_matrix_vjp(held.object, held.arguments, None, folded._handle, held.wanted))


# ---------------------------------------------------------------- arrays


def single(name: str, value: Any, check_finite: bool) -> Any:
    """An array of the GPU, or a NumPy array in single precision: integers become float32."""
    if type(value) is Array:
        return value
    a = _arrays.read(name, value)
    a = a.astype(_FLOAT32) if a.dtype.kind in "biu" else _arrays.taken(name, a)
    _refuse_double(name, a.dtype)
    if check_finite:
        _arrays.finite(name, a)
    return a


def promoted(operator: Operator, *arrays: Any) -> DType:
    """The dtype of a call."""
    _refuse_double("the operator", operator.dtype)
    return _arrays.common(operator.dtype, *arrays)


def uploaded(name: str, a: Any, dtype: DType) -> Array:
    """The array on the GPU, in that dtype."""
    if type(a) is Array:
        if a.dtype != dtype:
            raise TypeError(f"{name} must be of {dtype.name}, not {a.dtype.name}: on the GPU nothing is converted")
        return a
    return Array.of(_core.GpuArray.upload(_arrays.ready(a, dtype)))


def own_form(bar: Any, shape: tuple[int, ...], own: Any) -> Array:
    """A gradient of that shape, in the shape and field of its argument."""
    found = Array.of(bar).reshape(shape)
    if found.shape == own.shape and found.dtype == own.dtype:
        return found
    return Array(_arrays.gradient(found.download(), own.shape, own.dtype))


def _refuse_double(name: str, dtype: DType) -> None:
    if dtype not in _SINGLE:
        text = "the GPU computes in float32 and complex64: convert the arrays, or use backend='cpu'"
        raise TypeError(f"{name} is of {dtype.name}; {text}")


def _rows(name: str, operator: Operator, x: Any, adjoint: bool, dtype: DType) -> Any:
    """Rows (..., n) as (nb, k, n), by handle."""
    fold = stacks.plan(operator.batch_shape, x.shape, operator.shape[not adjoint], name)
    if fold.full != x.shape[:-1] or fold.perm is not None:
        raise ValueError(
            f"{name} of shape {x.shape} is not laid out as a stack of batch shape {operator.batch_shape} takes it: on "
            "the GPU nothing is broadcast or transposed"
        )
    return uploaded(name, x, dtype).reshape((fold.nb, fold.k, x.shape[-1]))._handle


# ---------------------------------------------------------------- operators


def by_matrix(local: Operator, dtype: DType, check_finite: bool) -> Held:
    """An operator whose arrays are on the CPU, through its matrix on the GPU."""
    w = local.matrix(backend="cpu", check_finite=check_finite)
    folded = uploaded("matrix", w, dtype).reshape((prod(local.batch_shape), *local.shape))

    def pull(bars: list[Any]) -> Gradients:
        ct = _arrays.gradient(Array.of(bars[0]).download().reshape(w.shape), w.shape, w.dtype)
        return _sent(local.matrix_vjp(ct, backend="cpu", check_finite=False))

    return Held("dense", (folded._handle,), pull)


def _sent(grads: Any) -> Any:
    """Gradients computed on the CPU, copied to the GPU."""
    if isinstance(grads, dict):
        return {name: _sent(grad) for name, grad in grads.items()}
    return [_sent(grad) for grad in grads] if isinstance(grads, list) else Array(grads)


def by_object(
    stem: str, arguments: Sequence[Argument], arrays: Sequence[Any], batch: Shape, dtype: DType, check_finite: bool
) -> Held:
    """An object that has kernels on the GPU, by its arguments."""
    given: list[Any] = []
    for argument, a in zip(arguments, arrays, strict=True):
        if a is None:
            given.append(None)
            continue
        a = single(argument.name, a, check_finite)
        core = a.shape[a.ndim - argument.rank :]
        if a.shape[: a.ndim - argument.rank] != batch:
            if type(a) is Array:
                raise ValueError(
                    f"{argument.name} must have the batch shape {batch} on the GPU, where nothing is broadcast, not "
                    f"{a.shape}"
                )
            a = np.broadcast_to(a, (*batch, *core))
        own = uploaded(argument.name, a, _arrays.real_type(dtype) if argument.real else dtype)
        given.append(own.reshape((prod(batch), *core))._handle)

    def pull(bars: list[Any]) -> Gradients:
        return {
            argument.name: own_form(bar, (*batch, *bar.shape[len(bar.shape) - argument.rank :]), own)
            for argument, own, bar in zip(arguments, arrays, bars, strict=True)
            if bar is not None and own is not None and argument.trained
        }

    return Held(stem, tuple(given), pull)
