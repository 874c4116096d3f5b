"""What the kernels of a recurrence take besides its arrays: W or its factors, and the order of the sequences."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from isometry import _core
from isometry._arrays import Array, DType
from isometry._backend import Place
from isometry.gpu._calls import beside
from isometry.operators._declared import Declared
from isometry.operators._operator import Operator


def by_length(lengths: Array | None, steps: int) -> tuple[Array | None, Array | None]:
    """A stable sorting order by decreasing length, and the lengths in that order; None if they are sorted."""
    if lengths is None or (lengths == steps).all():
        return None, None
    if (np.diff(lengths) <= 0).all():
        return None, np.ascontiguousarray(lengths)
    order = np.argsort(-lengths, kind="stable")
    return order, lengths[order]


class Route(NamedTuple):
    """An object of the core with its arguments, arrays for their gradients, and a function from these to a dict."""

    object: str
    arguments: tuple[Any, ...]
    bars: tuple[Any, ...]
    pull: Callable[[], dict[str, Any]]


def route_of(
    transition: Operator, dtype: DType, steps: int, batch: int, place: Place, *, gated: bool, resident: bool
) -> Route:
    """The factors of an operator where that is cheaper, else its matrix; a stack as arrays of its members."""
    if isinstance(transition, Declared):
        stem, p = transition._declaration.stem, transition._parameters(dtype)
        served = not gated if place == "gpu" else _core.recurrence_route(stem, p, steps, batch, gated) == "factored"
        if served:
            bars = transition._bars(p, resident)
            return Route(stem, p, bars, partial(transition._gradients, bars))
    w = transition._matrices(dtype, place)
    w_bar = beside(w, w.shape, w.dtype)
    return Route("dense", (w,), (w_bar,), partial(transition._pull_matrices, w, w_bar, place))
