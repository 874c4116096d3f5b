"""Kronecker products."""

from math import isqrt, prod

import reference as ref
from registry.draws import any_matrix
from registry.entry import Argument, Large, Object, Variant


def factors(rng, n, dtype, batch, first=None, last=()):
    """Two factors of an n x n product, of sizes as near as n allows, or the first of the given sizes; and the last."""
    p = max(p for p in range(1, isqrt(n) + 1) if n % p == 0)
    sizes = [*([(p, p), (n // p, n // p)] if first is None else [first, (n, n)]), *last]
    return {f"factors.{f}": any_matrix(rng, (*batch, *size), dtype) for f, size in enumerate(sizes)}


KRONECKER = Object(
    stem="kronecker",
    arguments={
        "factors.0": Argument(any_matrix, lambda n, m: (m, n), powers=(-10, 10)),
        "factors.1": Argument(any_matrix, lambda n, m: (2, 2)),
        "factors.2": Argument(any_matrix, lambda n, m: (1, 1)),
    },
    variants={
        "square": Variant("rc", lambda rng, n, dtype, batch: factors(rng, n, dtype, batch)),
        "three": Variant("rc", lambda rng, n, dtype, batch: factors(rng, n, dtype, batch, last=[(1, 1)])),
        "wide": Variant(
            "rc", lambda rng, n, dtype, batch: factors(rng, n, dtype, batch, (2, 3), [(1, 3)]), square=False
        ),
        "tall": Variant("rc", lambda rng, n, dtype, batch: factors(rng, n, dtype, batch, (3, 1)), square=False),
    },
    sizes={"square": ((64, 7), (51, 7)), "three": ((37, 7),), "wide": ((37, 7),), "tall": ((1, 7), (17, 7))},
    large={
        "alone": Large("square", 400, lambda rng, dtype: factors(rng, 400, dtype, ()), 300, idle=("matrix",)),
        "stack": Large("square", 60, lambda rng, dtype: factors(rng, 60, dtype, (64,)), 20, idle=("matrix",)),
    },
    matrix=ref.kronecker,
    vjp=ref.kronecker_vjp,
    size=lambda arguments: tuple(prod(a.shape[axis] for a in arguments.values()) for axis in (-2, -1)),
)
