"""Calls of operators on arrays of the GPU: nothing is copied but NumPy arrays that stand among them."""

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isometry import _batch, _check, _check_recurrence, _core
from isometry._arrays import ready, real_type, taken_integers
from isometry.gpu._array import Array

if TYPE_CHECKING:
    from isometry.operators._declared import Declared
    from isometry.operators._operator import Operator

_Handles = tuple[Any, ...]


class Setting(NamedTuple):
    """The arguments of a recurrence that are no arrays of numbers."""

    activation: str
    slope: float
    activation_on: str
    lengths: Any
    reverse: bool


def resident(*arrays: object) -> bool:
    """Whether one of them is on the GPU."""
    return any(type(a) is Array for a in arrays)


def apply(operator: "Operator", x: Any, adjoint: bool) -> Any:
    """W x or W^H x of rows."""
    object_, arguments, dtype, _ = _of(operator)
    rows, shape = _rows("x", operator, x, adjoint, dtype)
    out = _core.gpu_operator_apply(object_, arguments, rows, adjoint)
    return Array.of(out).reshape((*shape[:-1], operator.shape[adjoint]))


def apply_vjp(operator: "Operator", name: str, x: Any, ct: Any, adjoint: bool) -> tuple[dict[str, Any], Any]:
    """The gradients of the arguments and of x."""
    object_, arguments, dtype, pulled = _of(operator)
    rows, shape = _rows(name, operator, x, adjoint, dtype)
    ct_rows, _ = _rows("ct", operator, ct, not adjoint, dtype)
    wanted = [True] * len(arguments)
    bars, x_bar = _core.gpu_operator_apply_vjp(object_, arguments, rows, ct_rows, adjoint, wanted, True)
    return pulled(bars), Array.of(x_bar).reshape(shape)


def matrix(operator: "Operator") -> Any:
    """W."""
    object_, arguments, _, _ = _of(operator)
    out = _core.gpu_operator_matrix(object_, arguments)
    return Array.of(out).reshape((*operator.batch_shape, *operator.shape))


def matrix_vjp(operator: "Operator", ct: Any) -> dict[str, Any]:
    """The gradients of the arguments from that of W."""
    object_, arguments, dtype, pulled = _of(operator)
    _check.exact("ct", _shape(ct), (*operator.batch_shape, *operator.shape))
    w = _core.gpu_operator_matrix(object_, arguments)
    folded = _held("ct", ct, dtype).reshape((prod(operator.batch_shape), *operator.shape))
    return pulled(_core.gpu_operator_matrix_vjp(object_, arguments, w, folded._handle, [True] * len(arguments)))


def recurrence(transition: "Operator", given: Mapping[str, Any], setting: Setting) -> Any:
    """The states, (T, B, n)."""
    return Array.of(_core.gpu_recurrence(*_sequence(transition, given, setting)[:2]))


def recurrence_vjp(
    transition: "Operator", given: Mapping[str, Any], setting: Setting, states: Any, ct: Any
) -> dict[str, Any]:
    """The gradients of the transition's arguments and of all arrays given."""
    w, sequence, dtype, (object_, arguments, pulled) = _sequence(transition, given, setting)
    shape = (*sequence[0].shape[:2], transition.shape[0])
    _check.exact("states", _shape(states), shape, "(T, B, n)")
    _check.exact("ct", _shape(ct), shape, "(T, B, n)")
    names = ("x", "input_weight", "h0", "bias", "activation_bias")
    wanted = [True, *(given.get(name) is not None for name in names)]
    own, bar = (_held(name, a, dtype)._handle for name, a in (("states", states), ("ct", ct)))
    w_bar, *bars = _core.gpu_recurrence_vjp(w, sequence, own, bar, wanted)
    assert w_bar is not None
    w, w_bar = (h.reshape([1, *h.shape]) for h in (w, w_bar))
    grads = pulled(_core.gpu_operator_matrix_vjp(object_, arguments, w, w_bar, [True] * len(arguments)))
    return {"transition": grads, **{n: None if b is None else Array.of(b) for n, b in zip(names, bars, strict=True)}}


def _sequence(transition: "Operator", given: Mapping[str, Any], setting: Setting) -> tuple[Any, ...]:
    """W, the other arguments as the extension takes them, the dtype, and the transition on the GPU."""
    object_, arguments, dtype, pulled = _of(transition)
    shapes = {
        name: None if a is None else tuple(np.shape(a) if type(a) is not Array else a.shape)
        for name, a in given.items()
    }
    own_bias = shapes.pop("activation_bias")
    n = _check_recurrence.recurrence_transition(transition.shape, transition.batch_shape)
    steps, batch, _ = _check_recurrence.recurrence(n, **shapes, activation_on=setting.activation_on)  # type: ignore[arg-type]
    _check_recurrence.activation(setting.activation, "activation")
    _check_recurrence.slope(setting.slope)
    _check_recurrence.activation_units(
        setting.activation,
        n,
        own_bias,
        complex_=dtype.kind == "c",
        argument="activation_bias",
        features_of="transition",
    )
    held = {}
    for name, a in given.items():
        if name == "h0" and a is not None and type(a) is not Array:
            a = np.broadcast_to(a, (batch, n))
        held[name] = (
            None if a is None else _held(name, a, real_type(dtype) if name == "activation_bias" else dtype)._handle
        )
    lengths = None
    if setting.lengths is not None:
        lengths = taken_integers("lengths", setting.lengths).astype(np.int64)
        _check_recurrence.lengths_shape(lengths.shape, batch)
        _check_recurrence.lengths_range(int(lengths.min()), int(lengths.max()), steps)
    w = _core.gpu_operator_matrix(object_, arguments).reshape([n, n])
    sequence = (
        *(held[name] for name in ("x", "input_weight", "h0", "bias")),
        setting.activation,
        held["activation_bias"],
        float(setting.slope),
        setting.activation_on == "input",
        lengths,
        _check.flag("reverse", setting.reverse),
    )
    return w, sequence, dtype, (object_, arguments, pulled)


def _shape(a: Any) -> tuple[int, ...]:
    return a.shape if type(a) is Array else np.shape(a)


def _held(name: str, a: Any, dtype: "np.dtype[Any]") -> Array:
    """On the GPU, of that dtype."""
    if type(a) is Array:
        if a.dtype != dtype:
            raise TypeError(f"{name} must be of {dtype.name} on the GPU, not {a.dtype.name}")
        return a
    return Array.of(_core.GpuArray.upload(ready(np.asarray(a), dtype)))


def _rows(
    name: str, operator: "Operator", x: Any, adjoint: bool, dtype: "np.dtype[Any]"
) -> tuple[Any, tuple[int, ...]]:
    """Rows (..., n) as (nb, k, n), and their own shape."""
    shape = _shape(x)
    fold = _batch.plan(operator.batch_shape, shape, operator.shape[not adjoint], name)
    if fold.full != shape[:-1] or fold.perm is not None:
        raise ValueError(
            f"{name} of shape {shape} is not laid out as a stack of batch shape {operator.batch_shape} takes it: on "
            "the GPU nothing is broadcast or transposed"
        )
    return _held(name, x, dtype).reshape((fold.nb, fold.k, shape[-1]))._handle, shape


def _of(operator: "Operator") -> tuple[str, _Handles, "np.dtype[Any]", Any]:
    """Object, arguments on the GPU, dtype, and how gradients of the arguments become those of the operator."""
    from isometry.operators._declared import Declared

    dtype = np.dtype(np.complex64 if operator.dtype.kind == "c" else np.float32)
    if isinstance(operator, Declared) and operator._declaration.stem in _core.gpu_objects():
        return _declared(operator, dtype)
    w = operator.matrix(backend="cpu", check_finite=False)
    folded = _held("matrix", w, dtype).reshape((prod(operator.batch_shape), *operator.shape))

    def pulled(bars: list[Any]) -> dict[str, Any]:
        w_bar = Array.of(bars[0]).download().reshape(w.shape)
        return operator.matrix_vjp(w_bar if w.dtype.kind == "c" else w_bar.real, backend="cpu", check_finite=False)  # type: ignore[attr-defined,no-any-return]

    return "dense", (folded._handle,), dtype, pulled


def _declared(operator: "Declared", dtype: "np.dtype[Any]") -> tuple[str, _Handles, "np.dtype[Any]", Any]:
    batch = operator.batch_shape
    given: list[Any] = []
    for argument, a in zip(operator._flat, operator._arrays, strict=True):
        if a is None:
            given.append(None)
            continue
        lead = a.shape[: a.ndim - argument.rank]
        if lead != batch:
            a = _spread(argument.name, a, batch, argument.rank)
        own = _held(argument.name, a, real_type(dtype) if argument.real else dtype)
        given.append(own.reshape((prod(batch), *own.shape[own.ndim - argument.rank :]))._handle)

    def pulled(bars: list[Any]) -> dict[str, Any]:
        grads: dict[str, Any] = {}
        for argument, own, bar in zip(operator._flat, operator._arrays, bars, strict=True):
            if bar is not None and own is not None and argument.trained:
                core = tuple(bar.shape[1:]) if argument.rank else ()
                found = Array.of(bar).reshape((*batch, *core))
                if found.shape != own.shape:
                    raise ValueError(
                        f"{argument.name} is shared by the stack: on the GPU give it one array for each member"
                    )
                grads[argument.name] = found
        return grads

    return operator._declaration.stem, tuple(given), dtype, pulled


def _spread(name: str, a: Any, batch: tuple[int, ...], rank: int) -> Any:
    if type(a) is Array:
        raise ValueError(
            f"{name} must have the batch shape {batch} on the GPU, where nothing is broadcast, not {a.shape}"
        )
    return np.broadcast_to(a, (*batch, *a.shape[a.ndim - rank :]))
