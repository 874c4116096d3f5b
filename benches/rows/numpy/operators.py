"""The rows of operators and of activations.

Flops. Reflections: T n m^2, T^-1 m^3/3; T^-1 U^T n m^2, W 2 n^2 m, its VJP n m^2 for U T^-1 and 4 n^2 m + 4 n m^2; rows
4 n m B + m^2 B, their VJP 10 n m B + 4 m^2 B + 3 n m^2 with T. Cayley: 2 n^3, its gradient from the matrix 4 n^3.
modReLU: no products, only memory.
"""

from collections.abc import Iterator

import numpy as np

import isometry
from harness.row import Row, named
from harness.sizes import BATCHES, CAYLEY, REFLECTIONS, ROWS, SOLVED
from rows.numpy import formulas
from rows.numpy.sides import SCIPY, Arrays, Side, by, half_signs, normal, rows_of

MODRELU = ((20, 190), (4000, 512))  # rows, n
CUT = -0.4  # a bias that maps a third of the entries to 0


def rows() -> Iterator[Row]:
    for n, m in REFLECTIONS:
        yield from householder(n, m)
    for n, m, batch in ROWS:
        yield from applied(f"householder apply {n}/{m}/B{batch}", n, m, batch)
    yield from applied("small householder 8/2/B1", 8, 2, 1)
    for n in CAYLEY:
        yield from cayley(f"cayley {n}", (n, n), signed=True)
    for count, n in BATCHES:
        yield from cayley(f"cayley batch {count}x{n}", (count, n, n))
    yield from cayley("small cayley 8", (8, 8))
    for count, n in MODRELU:
        yield from modrelu(count, n)


# ---------------------------------------------------------------- products of reflections


def reflections(a: Arrays) -> isometry.Householder:
    return isometry.Householder(a["vectors"])


def householder(n: int, m: int) -> Iterator[Row]:
    return rows_of(
        f"householder matrix {n}/{m}",
        lambda rng: {"vectors": np.tril(normal(rng, n, m)), "ct": normal(rng, n, n)},
        lambda a: reflections(a).matrix(),
        [*by(" compact WY", formulas.wy_matrix), *ORGQR],
        (2.0 * n * n * m + 2.0 * n * m * m + m**3 / 3, 4.0 * n * n * m + 7.0 * n * m * m + m**3 / 3),
        back=lambda a: reflections(a).matrix_vjp(a["ct"]),
    )


def applied(name: str, n: int, m: int, batch: int) -> Iterator[Row]:
    forward = 4.0 * n * m * batch + 1.0 * m * m * batch + 1.0 * n * m * m
    backward = 10.0 * n * m * batch + 4.0 * m * m * batch + 3.0 * n * m * m
    return rows_of(
        name,
        lambda rng: {"vectors": np.tril(normal(rng, n, m)), "x": normal(rng, batch, n), "ct": normal(rng, batch, n)},
        lambda a: reflections(a).apply(a["x"]),
        [*by(" compact WY", formulas.wy_apply), *ORMQR],
        (forward, backward),
        back=pulled_rows,
    )


def pulled_rows(a: Arrays) -> Arrays:
    gradients, x = reflections(a).apply_vjp(a["x"], a["ct"])
    return {**gradients, "x": x}


# LAPACK's own products, through SciPy: values only, of lower-trapezoidal vectors
ORGQR = [Side("scipy.linalg.lapack orgqr", formulas.orgqr)] if SCIPY else []
ORMQR = [Side("scipy.linalg.lapack ormqr", formulas.ormqr)] if SCIPY else []


# ---------------------------------------------------------------- Cayley transforms


def cayley(name: str, shape: tuple[int, ...], signed: bool = False) -> Iterator[Row]:
    """One matrix or one batch; our side reads the packed triangle, a peer a full square."""
    n = shape[-1]

    def draw(rng: np.random.Generator) -> Arrays:
        p = normal(rng, *shape) * np.float32(0.05)
        signs = half_signs(n) if signed else np.ones(n, np.float32)
        return {"square": p, "upper": formulas.packed(p), "signs": signs, "ct": normal(rng, *shape)}

    def operator(a: Arrays) -> isometry.Cayley:
        return isometry.Cayley(a["upper"], signs=a["signs"] if signed else None)

    flops = 2.0 * float(np.prod(shape)) * n
    inverses = by(".linalg.inv", formulas.cayley_inverse, stacks=len(shape) > 2)
    return rows_of(
        name,
        draw,
        lambda a: operator(a).matrix(),
        [Side("numpy.linalg.solve", formulas.cayley_solve), *inverses],
        (flops, 3 * flops),
        back=lambda a: operator(a).matrix_vjp(a["ct"]),
        reference=formulas.cayley_checked,
        tolerance=SOLVED,
    )


# ---------------------------------------------------------------- modReLU


def modrelu(count: int, n: int) -> Iterator[Row]:
    """On separate rows; recurrences fuse it into their steps."""
    return rows_of(
        f"modrelu {count}x{n}",
        lambda rng: {"z": normal(rng, count, n), "ct": normal(rng, count, n), "bias": np.full(n, CUT, np.float32)},
        lambda a: isometry.activate(a["z"], "modrelu", bias=a["bias"]),
        [Side("numpy", lambda a: formulas.modrelu(a["z"], a["bias"], np.empty_like(a["z"])))],
        back=lambda a: named(isometry.activate_vjp(a["z"], "modrelu", a["ct"], bias=a["bias"])),
    )
