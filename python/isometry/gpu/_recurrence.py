"""The recurrence where an array is on the GPU."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from isometry import _arrays, _core
from isometry.gpu._array import Array
from isometry.gpu._calls import DType, Held, own_form, uploaded

_NAMES = ("x", "input_weight", "h0", "bias", "activation_bias")


class Call(NamedTuple):
    """A call whose arguments were checked, apart from its arrays."""

    transition: Held
    shape: tuple[int, int, int]  # of the states
    dtype: DType  # of the states
    activation: str
    slope: float
    on_input: bool
    lengths: Any
    reverse: bool


def recurrence(call: Call, given: Mapping[str, Any]) -> Array:
    """The states, (T, B, n)."""
    w, sequence = _sent(call, given)
    return Array.of(_core.gpu_recurrence(w, sequence))


def recurrence_vjp(call: Call, given: Mapping[str, Any], states: Any, ct: Any) -> dict[str, Any]:
    """The gradients of the transition's arguments and of all arrays given."""
    w, sequence = _sent(call, given)
    held = call.transition
    wanted = [True, *(given[name] is not None for name in _NAMES)]
    states, ct = (uploaded(name, a, call.dtype)._handle for name, a in (("states", states), ("ct", ct)))
    w_bar, *bars = _core.gpu_recurrence_vjp(w, sequence, states, ct, wanted)
    assert w_bar is not None
    w, w_bar = (handle.reshape([1, *handle.shape]) for handle in (w, w_bar))
    grads = held.pull(_core.gpu_operator_matrix_vjp(held.object, held.arguments, w, w_bar, held.wanted))
    own = {
        name: None if bar is None else own_form(bar, tuple(bar.shape), given[name])
        for name, bar in zip(_NAMES, bars, strict=True)
    }
    return {"transition": grads, **own, "start_state": None}  # marks are refused


def _sent(call: Call, given: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The matrix of the transition, and the other arguments as the extension takes them."""
    _, batch, n = call.shape
    arrays = dict(given)
    if arrays["h0"] is not None and type(arrays["h0"]) is not Array:
        arrays["h0"] = np.broadcast_to(arrays["h0"], (batch, n))
    real = {"activation_bias": _arrays.real_type(call.dtype)}
    handles = {
        name: None if a is None else uploaded(name, a, real.get(name, call.dtype))._handle for name, a in arrays.items()
    }
    w = _core.gpu_operator_matrix(call.transition.object, call.transition.arguments).reshape([n, n])
    sequence = (
        *(handles[name] for name in ("x", "input_weight", "h0", "bias")),
        call.activation,
        handles["activation_bias"],
        call.slope,
        call.on_input,
        call.lengths,
        call.reverse,
    )
    return w, sequence
