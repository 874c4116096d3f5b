"""Products of Householder reflections."""

import numpy as np

import reference as ref
from registry.draws import angles, last, long_columns, soft_sign, turns
from registry.entry import Argument, Large, Object, Variant, real_of


def vectors(rng, n, dtype, batch, m=3):
    return {"vectors": long_columns(rng, (*batch, n, m), dtype)}


HOUSEHOLDER = Object(
    stem="householder",
    arguments={
        "vectors": Argument(
            long_columns, directions=True, powers=(-40, 40), refused={"a zero column": lambda a: last(0.0, a)}
        ),
        "sign": Argument(
            soft_sign,
            refused={"beyond 1": lambda a: np.full_like(a, 1.001), "below -1": lambda a: np.full_like(a, -1.5)},
        ),
        "phases": Argument(turns, powers=(-20, 6)),
    },
    variants={
        "plain": Variant("rc", vectors),
        "many": Variant("rc", lambda rng, n, dtype, batch: vectors(rng, n, dtype, batch, 2 * n + 1), growth=2),
        "crowd": Variant("rc", lambda rng, n, dtype, batch: vectors(rng, n, dtype, batch, 5 * n + 2), growth=5),
        "sign": Variant(
            "rc",
            lambda rng, n, dtype, batch: {
                **vectors(rng, n, dtype, batch),
                "sign": rng.choice(np.array([-1.0, 1.0]), batch).astype(real_of(dtype)),
            },
        ),
        "phases": Variant(
            "c", lambda rng, n, dtype, batch: {**vectors(rng, n, dtype, batch), "phases": angles(rng, n, dtype, batch)}
        ),
        "real vectors, phases": Variant(
            "c",
            lambda rng, n, dtype, batch: {
                **vectors(rng, n, real_of(dtype), batch),
                "phases": angles(rng, n, dtype, batch),
            },
        ),
    },
    sizes={"plain": ((1, 3), (130, 1)), "many": ((1, 3), (64, 129))},
    large={
        "alone": Large("plain", 192, lambda rng, dtype: vectors(rng, 192, dtype, (), 96), 200),
        "stack": Large("plain", 40, lambda rng, dtype: vectors(rng, 40, dtype, (64,), 20), 20),
    },
    inverse=np.asarray,
    matrix=ref.householder,
    vjp=ref.householder_vjp,
)
