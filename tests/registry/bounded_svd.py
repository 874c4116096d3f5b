"""Matrices with singular values within a margin around 1."""

import reference as ref
from registry.draws import any_matrix
from registry.entry import Argument, Large, Object, Variant, real_of

MARGIN = 0.75


def parts(rng, sizes, dtype, batch):
    n, r, k = sizes
    return {
        "u": any_matrix(rng, (*batch, n, r), dtype),
        "logits": 2 * any_matrix(rng, (*batch, r), real_of(dtype)),
        "v": any_matrix(rng, (*batch, k, r), dtype),
    }


def margin(*_):
    return {"margin": MARGIN}


BOUNDED_SVD = Object(
    stem="bounded_svd",
    arguments={
        "u": Argument(any_matrix, lambda n, m: (m, n), powers=(-10, 10), free=(0,)),
        "logits": Argument(any_matrix, lambda n, m: (n,)),
        "v": Argument(any_matrix, lambda n, m: (n, n), powers=(-10, 10), free=(0,)),
    },
    variants={
        "square": Variant("rc", lambda rng, n, dtype, batch: parts(rng, (n, n, n), dtype, batch), options=margin),
        "thin": Variant(
            "rc",
            lambda rng, n, dtype, batch: parts(rng, (n + 1, max(n - 2, 1), n), dtype, batch),
            growth=16,  # a vector may nearly vanish in a matrix of low rank
            options=margin,
            square=False,
        ),
        "wide": Variant(
            "rc",
            lambda rng, n, dtype, batch: parts(rng, (max(n - 2, 1), n, n + 2), dtype, batch),
            options=margin,
            square=False,
        ),
    },
    sizes={"square": ((20, 1), (20, 200))},  # through the factors, and through W
    large={
        "alone": Large("square", 300, lambda rng, dtype: parts(rng, (300, 300, 300), dtype, ()), 200),
        "stack": Large("square", 60, lambda rng, dtype: parts(rng, (60, 60, 60), dtype, (64,)), 20),
    },
    matrix=ref.bounded_svd,
    vjp=ref.bounded_svd_vjp,
    options=margin,
    random=lambda n: {"margin": 0.5},
)
