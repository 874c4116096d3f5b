"""The Cayley transform of one matrix and of batches: 2 n^3 flops, its gradient from the matrix 4 n^3."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import isometry
from isometry.cli.bench.numpy import formulas
from isometry.cli.bench.numpy.sides import Arrays, Library, Side, half_signs, libraries, normal, rows_of
from isometry.cli.bench.row import Row
from isometry.cli.bench.sizes import BATCHES, CAYLEY, SOLVED


def rows() -> Iterator[Row]:
    for n in CAYLEY:
        yield from make_rows(f"cayley {n}", (n, n), signed=True)
    for count, n in BATCHES:
        yield from make_rows(f"cayley batch {count}x{n}", (count, n, n))
    yield from make_rows("small cayley 8", (8, 8))


def make_rows(name: str, shape: tuple[int, ...], signed: bool = False) -> Iterator[Row]:
    """The rows of one matrix or one batch; our side reads the packed triangle, a peer a full square."""
    n = shape[-1]

    def draw(rng: np.random.Generator) -> Arrays:
        p = normal(rng, *shape) * np.float32(0.05)
        signs = half_signs(n) if signed else np.ones(n, np.float32)
        return {"square": p, "upper": formulas.packed(p), "signs": signs, "ct": normal(rng, *shape)}

    def ours(a: Arrays) -> isometry.Cayley:
        return isometry.Cayley(a["upper"], signs=a["signs"] if signed else None)

    flops = 2.0 * float(np.prod(shape)) * n
    return rows_of(
        name,
        draw,
        Side("isometry", lambda a: ours(a).matrix(), lambda a: ours(a).matrix_vjp(a["ct"])),
        [SOLVE, *(by_inverse(library) for library in libraries() if len(shape) == 2 or library.takes_stacks())],
        (flops, 3 * flops),
        reference=CHECKED,
        pick={"upper": formulas.packed},
        tolerance=SOLVED,
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
CHECKED = Side(
    "float64",
    lambda a: formulas.cayley_checked(a["square"], a["signs"]),
    lambda a: {"upper": formulas.cayley_checked_vjp(a["square"], a["signs"], a["ct"])},
)
