"""What the kernels of a recurrence take besides its arrays: W or its factors, and the order of the sequences."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from isometry import _core
from isometry._arrays import Array, DType
from isometry._backend import Place
from isometry._cells.affine import AFFINE
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


class Call(NamedTuple):
    """The arguments that both directions pass to the extension."""

    members: int | None  # of an ensemble
    shape: tuple[int, int, int]  # of the states of a member
    dtype: DType
    order: Array | None  # of the sequences, if they are not sorted already
    route: Route
    place: Place
    arrays: tuple[Array | None, ...]  # x, input_weight, h0, bias, activation_bias
    law: tuple[str, float, tuple[bool]]  # the activation, its slope, whether it acts on the input alone
    lengths: Array | None
    reverse: bool
    starts: tuple[Array, Array | None] | None = None  # marks (T, B), and the state (B, n) before them

    def given(self) -> tuple[str, Any, tuple[Any, ...], Any, Any]:
        """The arguments as the extension takes them."""
        marks, state = (None, None) if self.starts is None else self.starts
        transition = self.route.object, self.route.arguments
        return AFFINE.name, transition, (*self.arrays, state), self.law, (self.lengths, self.reverse, marks)

    def run(self, states: Any) -> None:
        """Fills the states, or what is wanted of them."""
        _core.sequence(*self.given(), (states, None, None), self.place, None, self.members)

    def pull(self, states: Array, ct: Array, bars: tuple[Any, ...]) -> None:
        """Fills the gradients of the arrays, of the state at marks, and of the transition's arguments."""
        results, cts = (states, None, None), (ct, None)
        _core.sequence_vjp(*self.given(), results, cts, bars, self.route.bars, self.place, self.members)


def route_of(transition: Operator, dtype: DType, steps: int, batch: int, place: Place) -> Route:
    """The factors of an operator where that is cheaper, else its matrix; a stack as arrays of its members."""
    if isinstance(transition, Declared):
        stem, p = transition._declaration.stem, transition._parameters(dtype)
        if place == "gpu" or _core.recurrence_route(stem, p, steps, batch) == "factored":
            bars = transition._bars(p)
            return Route(stem, p, bars, partial(transition._gradients, bars))
    w = transition._matrices(dtype, place)
    w_bar = np.empty_like(w)
    return Route("dense", (w,), (w_bar,), partial(transition._pull_matrices, w, w_bar, place))


def in_order(a: Array, order: Array | None) -> Array:
    """An array (T, B, ...) with its sequences in this order."""
    return a if order is None else a[:, order]


def unsorted(a: Array, order: Array | None) -> Array:
    """The same in the user's order again."""
    return a if order is None else a.take(np.argsort(order), 1)
