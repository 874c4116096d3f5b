"""Products of reflections: the matrix, and m reflections applied to B rows.

Flops: T n m^2, T^-1 m^3/3; T^-1 U^T n m^2, W 2 n^2 m, its VJP n m^2 for U T^-1 and 4 n^2 m + 4 n m^2; rows 4 n m B +
m^2 B, their VJP 10 n m B + 4 m^2 B + 3 n m^2 with T.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import isometry
from isometry.cli.bench.numpy import formulas, lapack
from isometry.cli.bench.numpy.sides import Arrays, Library, Side, libraries, normal, rows_of
from isometry.cli.bench.row import Row
from isometry.cli.bench.sizes import LONGEST_LOOP, REFLECTIONS, ROWS


def rows() -> Iterator[Row]:
    for n, m in REFLECTIONS:
        yield from matrix_rows(n, m)
    for n, m, batch in ROWS:
        yield from apply_rows(f"householder apply {n}/{m}/B{batch}", n, m, batch)
    yield from apply_rows("small householder 8/2/B1", 8, 2, 1)


def matrix_rows(n: int, m: int) -> Iterator[Row]:
    return rows_of(
        f"householder matrix {n}/{m}",
        lambda rng: {"vectors": np.tril(normal(rng, n, m)), "ct": normal(rng, n, n)},
        Side("isometry", lambda a: reflections(a).matrix(), lambda a: reflections(a).matrix_vjp(a["ct"])),
        [*map(matrix_by, libraries()), *lapack.peers(lapack.orgqr)],
        (2.0 * n * n * m + 2.0 * n * m * m + m**3 / 3, 4.0 * n * n * m + 7.0 * n * m * m + m**3 / 3),
    )


def apply_rows(name: str, n: int, m: int, batch: int) -> Iterator[Row]:
    def back(a: Arrays) -> Arrays:
        gradients, x = reflections(a).apply_vjp(a["x"], a["ct"])
        return {**gradients, "x": x}

    looped = Side("numpy loop over reflections", lambda a: formulas.loop_apply(a["vectors"], a["x"]))
    return rows_of(
        name,
        lambda rng: {"vectors": np.tril(normal(rng, n, m)), "x": normal(rng, batch, n), "ct": normal(rng, batch, n)},
        Side("isometry", lambda a: reflections(a).apply(a["x"]), back),
        [*map(apply_by, libraries()), *lapack.peers(lapack.ormqr), *([looped] if m <= LONGEST_LOOP else [])],
        (
            4.0 * n * m * batch + 1.0 * m * m * batch + 1.0 * n * m * m,
            10.0 * n * m * batch + 4.0 * m * m * batch + 3.0 * n * m * m,
        ),
    )


def reflections(a: Arrays) -> isometry.Householder:
    return isometry.Householder(a["vectors"])


def matrix_by(library: Library) -> Side:
    return Side(
        f"{library.name} compact WY",
        lambda a: formulas.wy_matrix(a["vectors"], library),
        lambda a: {"vectors": formulas.wy_matrix_vjp(a["vectors"], a["ct"], library)},
    )


def apply_by(library: Library) -> Side:
    return Side(
        f"{library.name} compact WY",
        lambda a: formulas.wy_apply(a["vectors"], a["x"], library),
        lambda a: formulas.wy_apply_vjp(a["vectors"], a["x"], a["ct"], library),
    )
