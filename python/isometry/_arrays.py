"""Conversion of NumPy arrays for the extension and back: dtypes, C order, folding, gradients in their argument's
shape."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isometry import _core, gpu
from isometry._rules import check, check_gpu, check_out, stacks
from isometry._rules.check import Shape
from isometry._rules.masks import unmasked

Array = NDArray[Any]
DType = np.dtype[Any]

FLOAT64: DType = np.dtype(np.float64)
INT64: DType = np.dtype(np.int64)
_REAL: dict[DType, DType] = {np.dtype(k): np.dtype(v) for k, v in check.REAL.items()}
_COMPLEX: dict[DType, DType] = {np.dtype(k): np.dtype(v) for k, v in check.COMPLEX.items()}


def read(argument: str, value: object) -> Array:
    """The value as an array of any type."""
    if type(value) is np.ndarray:
        return value
    if value is None:
        check.kind(argument, "an array", value)
    if type(value) is gpu.Array:  # its dtype and shape are known; code that reads its elements refuses it
        return value  # type: ignore[return-value]
    unmasked(argument, value)
    if hasattr(value, "toarray"):  # SciPy's sparse arrays and matrices
        check.dense(argument, type(value).__name__)
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        check.unreadable(argument, error)


def taken(argument: str, value: object) -> Array:
    """The value as an array of one of the four dtypes in native byte order; integers and bool become float64."""
    a = read(argument, value)
    if a.dtype in _REAL:
        return a
    if a.dtype.kind in "biu":
        return a.astype(FLOAT64)
    check.floating(argument, a.dtype.name)
    return a.astype(a.dtype.newbyteorder("="))


def taken_real(argument: str, value: object) -> Array:
    """As `taken`, for an argument that must be real."""
    a = taken(argument, value)
    if a.dtype.kind == "c":
        check.real(argument, a.dtype.name)
    return a


def taken_integers(argument: str, value: object) -> Array:
    """The value as an array of integers; an empty list has no type of its own."""
    a = read(argument, value)
    if not a.size and isinstance(value, (list, tuple)):
        return a.astype(INT64)
    check.integer(argument, a.dtype.name)
    return a


def real_type(dtype: DType) -> DType:
    """float32 of complex64, float64 of complex128."""
    return _REAL[dtype]


def complex_type(dtype: DType) -> DType:
    """complex64 of float32, complex128 of float64."""
    return _COMPLEX[dtype]


def common(*arrays: Array | DType | None) -> DType:
    """The dtype NumPy promotes to; None arguments are ignored."""
    first: DType | None = None
    for a in arrays:
        if a is not None:
            dtype = a if isinstance(a, np.dtype) else a.dtype
            if first is None:
                first = dtype
            elif dtype != first:
                first = np.result_type(first, dtype)
    assert first is not None
    return first


def field_of_result(argument: str, a: Array, result: DType) -> None:
    """The cotangent of a real result must be real."""
    if a.dtype.kind == "c" and result.kind != "c":
        check.field_of_result(argument, a.dtype.name, result.name)


def ready(a: Array, dtype: DType) -> Array:
    """The array in the dtype, in C order and aligned; a copy only if needed.

    One of the GPU is returned as it is: the extension refuses it if it does not fit.
    """
    flags = a.flags
    if (a.dtype == dtype and flags.c_contiguous and flags.aligned) or type(a) is gpu.Array:
        return a
    with np.errstate(over="ignore"):  # of what single precision does not hold
        return np.array(a, dtype=dtype, order="C")


def writable(argument: str, out: object, shape: Shape, dtype: DType) -> Array:
    """An array that the caller gives for a result of this shape and dtype."""
    if not isinstance(out, np.ndarray):
        check.kind(argument, "a numpy.ndarray", out)
    unmasked(argument, out)
    check_out.room(argument, tuple(out.shape), out.dtype.name, shape, dtype.name)
    flags = out.flags
    whole = flags.c_contiguous and flags.aligned and flags.writeable and out.dtype.isnative
    check_out.written(argument, whole)
    return out


def all_finite(check_finite: bool, **arrays: Array | None) -> None:
    """Reject NaN and infinity in arguments of these names, unless `check_finite` is False."""
    if check.flag("check_finite", check_finite):
        for name, a in arrays.items():
            finite(name, a)


def finite(argument: str, a: Array | None) -> None:
    """Reject NaN and infinity."""
    if a is not None and not _core.all_finite(ready(a, a.dtype)):
        check.not_finite(argument)


def broadcast(a: Array, shape: Shape, argument: str = "an array") -> Array:
    """The array in that shape, of which its own is the end."""
    if type(a) is gpu.Array and a.shape != shape:
        check_gpu.laid_out(argument, a.shape, shape)
    return np.broadcast_to(a, shape)


def transposed(a: Array, axes: Shape) -> Array:
    """The array with its axes in another order."""
    if type(a) is gpu.Array:
        check_gpu.laid_out("an array", a.shape, tuple([a.shape[axis] for axis in axes]))
    return a.transpose(axes)


def stacked(a: Array, rank: int, batch: Shape, dtype: DType) -> Array:
    """The array broadcast to (*batch, core) and folded to (nb, core), core its last `rank` axes."""
    core = a.shape[a.ndim - rank :]
    if a.shape[: a.ndim - rank] != batch:
        a = broadcast(a, (*batch, *core))
    return ready(a, dtype).reshape((prod(batch), *core))


def folded(x: Array, fold: stacks.Fold, dtype: DType) -> Array:
    """Rows x (..., n) as (nb, k, n)."""
    n = x.shape[-1]
    if x.shape[:-1] != fold.full:
        x = broadcast(x, (*fold.full, n))
    if fold.perm is not None:
        x = transposed(x, (*fold.perm, len(fold.full)))
    return ready(x, dtype).reshape(fold.nb, fold.k, n)


def unfolded(out: Array, fold: stacks.Fold) -> Array:
    """The inverse of `folded`, to (*full, n)."""
    out = out.reshape((*fold.permuted, out.shape[-1]))
    if fold.inverse is None:
        return out
    return np.ascontiguousarray(transposed(out, (*fold.inverse, len(fold.full))))


def gradient(wide: Array, shape: Shape, dtype: DType) -> Array:
    """A gradient in the form of its argument: summed over broadcast axes, the real part for a real argument."""
    if type(wide) is gpu.Array and (wide.shape != shape or wide.dtype != dtype):
        return gpu.Array(gradient(wide.download(), shape, dtype))  # type: ignore[return-value]
    if wide.shape != shape:
        wide = wide.sum(axis=stacks.summed_axes(wide.shape, shape)).reshape(shape)
    if dtype.kind == "f" and wide.dtype.kind == "c":
        wide = wide.real
    return ready(wide, dtype)
