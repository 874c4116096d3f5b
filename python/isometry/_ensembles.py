"""Ensembles: recurrences of the same sizes in one call, over a stack of operators.

The kernels take every array with the members as first axis, of size 1 where one serves all of them.
"""

from typing import Any

import numpy as np

from isometry._arrays import Array, DType, gradient, ready
from isometry._cells.affine import AFFINE
from isometry._routes import Call
from isometry._states import checked, ends

#: The axes of one member's array.
_RANKS = {"input_weight": 2, "h0": 2, "bias": 1, "activation_bias": 1}


def arguments(given: dict[str, Array | None], dtype: DType, order: Array | None, batch: int) -> tuple[Any, ...]:
    """x, input_weight, h0 and bias in the form the kernels take."""
    x, h0 = given["x"], _first(given, "h0")
    assert x is not None
    if h0 is not None:
        h0 = np.broadcast_to(h0 if h0.ndim == 3 else h0[:, None], (h0.shape[0], batch, h0.shape[-1]))
    weight, bias = _first(given, "input_weight"), _first(given, "bias")
    ordered = [_sorted(np.moveaxis(x, 1, 0), order, 2), weight, _sorted(h0, order, 1), bias]
    return tuple([None if a is None else ready(a, dtype) for a in ordered])


def states(call: Call) -> Array:
    """The states (T, E, B, n)."""
    assert call.members is not None
    found = np.empty((call.members, *call.shape), call.dtype)
    call.run(found)
    return ready(np.moveaxis(_sorted(found, _back(call.order), 2), 0, 1), call.dtype)


def last(states: Array, h0: Array | None, lengths: Any, reverse: bool) -> Array:
    """The last state of each sequence (E, B, n); h0 for one without a step."""
    found = np.stack([ends(a, lengths, reverse) for a in np.moveaxis(states, 1, 0)])
    if lengths is not None and (idle := np.asarray(lengths) == 0).any():
        found[:, idle] = 0 if h0 is None else np.broadcast_to(h0, found.shape)[:, idle]
    return found


def gradients(
    call: Call, given: dict[str, Array | None], states: Array, ct: Array, *, check_states: bool
) -> dict[str, Any]:
    """The gradients of all arguments."""
    members, route, dtype = call.members, call.route, call.dtype
    assert members is not None
    states, ct = (ready(_sorted(np.moveaxis(a, 1, 0), call.order, 2), dtype) for a in (states, ct))
    if check_states:
        for i in range(members):
            _check(call, states[i], i)
    arrays = dict(zip(AFFINE.names, call.arrays, strict=True))
    bars = {name: None if a is None else np.empty((members, *a.shape[1:]), a.dtype) for name, a in arrays.items()}
    out, start = tuple(bars.values()), None if call.starts is None else call.starts[1]
    bars["start_state"] = None if start is None else np.empty((members, *start.shape[1:]), dtype)
    call.pull(states, ct, (*out, bars["start_state"]))
    back = _back(call.order)
    bars |= {name: _sorted(bars[name], back, axis) for name, axis in (("x", 2), ("h0", 1), ("start_state", 1))}
    found: dict[str, Any] = {"transition": route.pull()}
    for name, bar in bars.items():
        own = given.get(name)
        if bar is None or own is None:
            found[name] = None
        else:
            found[name] = gradient(np.moveaxis(bar, 0, 1) if name == "x" else bar, own.shape, own.dtype)
    return found


def _check(call: Call, states: Array, i: int) -> None:
    """Refuse states of the i-th member that do not belong to the arguments."""
    part = lambda a: None if a is None else a[i if len(a) > 1 else 0]
    route = call.route._replace(arguments=tuple(map(part, call.route.arguments)))
    starts: Any = None if call.starts is None else tuple(map(part, call.starts))
    checked(states, call._replace(members=None, route=route, arrays=tuple(map(part, call.arrays)), starts=starts))


def _first(given: dict[str, Array | None], name: str) -> Array | None:
    """An array with the members as first axis."""
    a = given[name]
    return a if a is None or a.ndim > _RANKS[name] else a[None]


def _sorted(a: Any, order: Array | None, axis: int) -> Any:
    return a if a is None or order is None else a.take(order, axis)


def _back(order: Array | None) -> Array | None:
    return None if order is None else np.argsort(order)
