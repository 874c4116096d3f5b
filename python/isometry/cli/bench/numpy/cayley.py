"""The Cayley transform of one matrix and of batches: 2 n^3 flops, its gradient from the matrix 4 n^3."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import isometry
from isometry.cli.bench.numpy import formulas
from isometry.cli.bench.numpy.sides import (
    NUMPY,
    Array,
    Arrays,
    Library,
    Problem,
    Side,
    half_signs,
    libraries,
    normal,
    rows_of,
)
from isometry.cli.bench.row import Row
from isometry.cli.bench.workloads import BATCHES, CAYLEY

# a solve adds about cond(I + A) to the error of the product; here cond is below 4
TOLERANCE = (2e-5, 4e-4)


def rows() -> Iterator[Row]:
    for n in CAYLEY:
        yield from make_rows(f"cayley {n}", (n, n), half_signs(n))
    for count, n in BATCHES:
        yield from make_rows(f"cayley batch {count}x{n}", (count, n, n), None)
    yield from make_rows("small cayley 8", (8, 8), None)


def make_rows(name: str, shape: tuple[int, ...], signs: Array | None) -> Iterator[Row]:
    """The rows of one matrix or one batch; our side reads the packed triangle, a peer a full square."""

    def draw(rng: np.random.Generator) -> Arrays:
        p = normal(rng, *shape) * np.float32(0.05)
        last = np.ones(shape[-1], np.float32) if signs is None else signs
        return {"square": p, "upper": formulas.packed(p), "signs": last, "ct": normal(rng, *shape)}

    def ours(a: Arrays) -> isometry.Cayley:
        return isometry.Cayley(a["upper"], signs=None if signs is None else a["signs"])

    flops = 2.0 * float(np.prod(shape)) * shape[-1]
    inverses = [library for library in libraries() if len(shape) == 2 or library.takes_stacks()]
    return rows_of(
        name,
        Problem(draw),
        Side("isometry", lambda a: ours(a).matrix(), lambda a: ours(a).matrix_vjp(a["ct"])),
        [SOLVE, *map(by_inverse, inverses)],
        (flops, 3 * flops),
        reference=CHECKED,
        pick={"upper": formulas.packed},
        tolerance=TOLERANCE,
    )


def by_inverse(library: Library) -> Side:
    return Side(
        f"{library.name}.linalg.inv",
        lambda a: formulas.cayley_inverse(a["square"], a["signs"], library),
        lambda a: {"upper": formulas.cayley_inverse_vjp(a["square"], a["signs"], a["ct"], library)},
    )


SOLVE = Side(
    "numpy.linalg.solve",
    lambda a: formulas.cayley_solve(a["square"], a["signs"]),
    lambda a: {"upper": formulas.cayley_solve_vjp(a["square"], a["signs"], a["ct"])},
)


def _checked(a: Arrays) -> Array:
    """W with its residual checked, since batched solves are wrong on some CPUs."""
    w, skew, eye = (
        formulas.cayley_inverse(a["square"], a["signs"], NUMPY),
        formulas.skew(a["square"]),
        np.eye(a["square"].shape[-1]),
    )
    residual = float(np.abs((eye + skew) @ (w * a["signs"]) - (eye - skew)).max())
    if residual > 1e-10:
        raise ArithmeticError(f"the float64 reference has a residual of {residual:.1e}")
    return w


def _checked_back(a: Arrays) -> Arrays:
    """V^T - V as in formulas.cayley_inverse_vjp, with the inverse from the checked W: 2 S = W D + I."""
    s = (_checked(a) * a["signs"] + np.eye(a["square"].shape[-1])) / 2
    transposed = np.swapaxes(s, -1, -2)
    v = 2 * transposed @ (a["ct"] * a["signs"]) @ transposed
    return {"upper": np.swapaxes(v, -1, -2) - v}


CHECKED = Side("float64", _checked, _checked_back)
