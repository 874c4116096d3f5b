"""The parts of the two rows of a problem: arrays, and sides that compute a value and its VJP from them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from isometry.cli.bench.row import GRADIENT, VALUE, Bar, Candidate, Results, Row

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
BARS = [Bar("best of NumPy and SciPy", 1.0, 2.0)]


class Side(NamedTuple):
    """`forward` gives the value, `back` the gradients under the names of the arrays; None if a side does not have
    it."""

    name: str
    forward: Callable[[Arrays], Array] | None
    back: Callable[[Arrays], Arrays] | None


class Problem:
    """The arrays of one size, float32, drawn on first use: a skipped row costs nothing."""

    def __init__(self, draw: Callable[[np.random.Generator], Arrays]) -> None:
        self.draw = draw

    @cached_property
    def drawn(self) -> Arrays:
        return self.draw(np.random.default_rng(0))

    @property
    def wide(self) -> Arrays:
        return {name: a.astype(np.float64) for name, a in self.drawn.items()}


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape, np.float32)


def half_signs(n: int) -> Array:
    """D of a scoRNN whose second half is -1."""
    return np.where(np.arange(n) < n // 2, np.float32(1), np.float32(-1))


def rows_of(
    name: str,
    problem: Problem,
    ours: Side,
    peers: Sequence[Side],
    flops: tuple[float, float],
    *,
    reference: Side | None = None,
    pick: Mapping[str, Callable[[Array], Array]] | None = None,
    tolerance: tuple[float, float] = (VALUE, GRADIENT),
    plan: str = "",
) -> Iterator[Row]:
    """The row of the value and the row of the VJP; the reference (by default the first peer) computes in float64.

    `pick` converts a peer's gradient to the form of ours for the comparison.
    """
    exact = reference or peers[0]
    for back, label in enumerate((name, f"{name} vjp")):
        yield Row(
            name=label,
            ours=candidate(ours, problem, back, {}),
            peers=[candidate(peer, problem, back, pick or {}) for peer in peers if peer[1 + back] is not None],
            reference=partial(results, exact, problem, back, pick or {}, wide=True),
            bars=BARS,
            flops=flops[back],
            tolerance=tolerance,
            plan=plan,
        )


def candidate(side: Side, problem: Problem, back: int, pick: Mapping[str, Callable[[Array], Array]]) -> Candidate:
    function = side[1 + back]
    assert callable(function)
    return Candidate(side.name, lambda: function(problem.drawn), partial(results, side, problem, back, pick))


def results(
    side: Side, problem: Problem, back: int, pick: Mapping[str, Callable[[Array], Array]], *, wide: bool = False
) -> Results:
    """The results of a side, under the names used in row.py."""
    arrays = problem.wide if wide else problem.drawn
    if not back:
        assert side.forward is not None
        return {"value": side.forward(arrays)}
    assert side.back is not None
    return {f"gradient of {key}": pick[key](bar) if key in pick else bar for key, bar in side.back(arrays).items()}


class Library(NamedTuple):
    """`triangular(t, b, transposed)` solves t x = b, or t^T x = b, for an upper triangular t.

    NumPy's solves and inverses always compute in double precision, SciPy's do not.
    """

    name: str
    triangular: Callable[[Array, Array, bool], Array]
    inverse: Callable[[Array], Array]

    def takes_stacks(self) -> bool:
        """Whether `inverse` accepts a stack of matrices."""
        try:
            return self.inverse(np.eye(2)[None]).shape == (1, 2, 2)
        except ValueError:
            return False


def _numpy_triangular(t: Array, b: Array, transposed: bool) -> Array:
    return np.linalg.solve(t.T if transposed else t, b)  # NumPy has no triangular solve


NUMPY = Library("numpy", _numpy_triangular, np.linalg.inv)


def has_scipy() -> bool:
    return importlib.util.find_spec("scipy") is not None


def libraries() -> list[Library]:
    """NumPy, and SciPy if it is installed."""
    if not has_scipy():
        return [NUMPY]
    from scipy import linalg

    def triangular(t: Array, b: Array, transposed: bool) -> Array:
        return linalg.solve_triangular(t, b, trans=int(transposed), check_finite=False)

    return [NUMPY, Library("scipy", triangular, lambda a: linalg.inv(a, check_finite=False))]
