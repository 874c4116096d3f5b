"""The two rows of a problem: of the value, beside its peers, and of its VJP."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from harness.row import TOLERANCE, Bar, Candidate, Results, Row
from harness.row import side as candidate

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
Draw = Callable[[np.random.Generator], Arrays]
Forward = Callable[[Arrays], Array]
BAR = Bar("best of NumPy and SciPy", 1.0, 2.0)
SCIPY = importlib.util.find_spec("scipy") is not None


class Side(NamedTuple):
    name: str
    forward: Forward


def rows_of(
    name: str,
    draw: Draw,
    ours: Forward,
    peers: Sequence[Side],
    flops: tuple[float, float] = (0.0, 0.0),
    *,
    back: Callable[[Arrays], Arrays] | None = None,
    reference: Forward | None = None,
    tolerance: tuple[float, float] = TOLERANCE,
    bar: Bar = BAR,
    plan: str = "",
) -> Iterator[Row]:
    """The row of the value and, where there is `back`, that of the VJP; all from arrays of float32.

    The reference, by default the first peer, computes in float64; that of the VJP, whose gradients are named as the
    arrays are, is `back` itself.
    """
    drawn = cache(lambda: draw(np.random.default_rng(0)))  # on first use: a skipped row costs nothing

    def value(side: Side) -> Candidate:
        return candidate(side.name, lambda: side.forward(drawn()))

    def wide() -> Arrays:
        return {key: a.astype(np.float64) for key, a in drawn().items()}

    exact = reference or peers[0].forward
    rest = (tolerance, None, plan)
    own, *others = (value(side) for side in (Side("isometry", ours), *peers))
    yield Row(name, own, others, lambda: {"value": exact(wide())}, [bar], flops[0], *rest)
    if back:
        gradients: Callable[[Arrays], Results] = lambda a: {f"gradient of {key}": bar for key, bar in back(a).items()}
        own = Candidate("isometry", lambda: back(drawn()), lambda: gradients(drawn()))
        yield Row(f"{name} vjp", own, [], lambda: gradients(wide()), (), flops[1], *rest)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape, np.float32)


def half_signs(n: int) -> Array:
    """D of a scoRNN whose second half is -1."""
    return np.where(np.arange(n) < n // 2, np.float32(1), np.float32(-1))


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


# NumPy has no triangular solve
NUMPY = Library("numpy", lambda t, b, transposed: np.linalg.solve(t.T if transposed else t, b), np.linalg.inv)


def libraries() -> list[Library]:
    """NumPy, and SciPy if it is installed."""
    if not SCIPY:
        return [NUMPY]
    from scipy import linalg

    def triangular(t: Array, b: Array, transposed: bool) -> Array:
        return linalg.solve_triangular(t, b, trans=int(transposed), check_finite=False)

    return [NUMPY, Library("scipy", triangular, lambda a: linalg.inv(a, check_finite=False))]


def by(name: str, forward: Callable[[Library, Arrays], Array], stacks: bool = False) -> list[Side]:
    """A side of each library, with `stacks` of each that takes them, for formulas that need one."""
    every = [library for library in libraries() if not stacks or library.takes_stacks()]
    return [Side(own.name + name, partial(forward, own)) for own in every]
