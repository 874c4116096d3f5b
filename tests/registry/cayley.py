"""The scaled Cayley transform."""

import numpy as np

import reference as ref
from registry.draws import NO_SIGNS, angles, coins, halves, signs, turns
from registry.entry import Argument, Large, Object, Variant, real_of


def upper(rng, n, dtype, batch):
    return {"upper": halves(rng, (*batch, n * (n - 1) // 2), dtype)}


CAYLEY = Object(
    stem="cayley",
    arguments={
        "upper": Argument(halves, powers=(-20, 6)),
        "diagonal": Argument(halves, needs_complex=True, powers=(-20, 6)),
        "signs": Argument(coins, refused=NO_SIGNS),
        "phases": Argument(turns, powers=(-20, 6)),
    },
    condition=lambda upper, diagonal=0.0, **others: 1 + sum(np.abs(a).max(initial=0) for a in (upper, diagonal)),
    variants={
        "plain": Variant("rc", upper),
        "signs": Variant(
            "rc", lambda rng, n, dtype, batch: {**upper(rng, n, dtype, batch), "signs": signs(rng, n, dtype, batch)}
        ),
        "diagonal, phases": Variant(
            "c",
            lambda rng, n, dtype, batch: {
                **upper(rng, n, dtype, batch),
                "diagonal": 0.5 * ref.normal(rng, *batch, n, dtype=real_of(dtype)),
                "phases": angles(rng, n, dtype, batch),
            },
        ),
        "real upper, phases": Variant(
            "c",
            lambda rng, n, dtype, batch: {
                **upper(rng, n, real_of(dtype), batch),
                "phases": angles(rng, n, dtype, batch),
            },
        ),
    },
    # both sides of what is computed one matrix a lane, in stacks
    sizes={
        "signs": ((1, 3), *((n, 2, (19,)) for n in (1, 2, 3, 5, 8, 9, 15, 16, 17, 31, 32, 33, 47, 65))),
        "diagonal, phases": ((1, 3), (2, 2, (7,)), (17, 2, (7,)), (32, 2, (7,)), (33, 2, (7,))),
    },
    large={
        "alone": Large("plain", 260, lambda rng, dtype: upper(rng, 260, dtype, ()), 200),
        "stack": Large("plain", 40, lambda rng, dtype: upper(rng, 40, dtype, (64,)), 20),
    },
    inverse=np.asarray,
    matrix=ref.cayley,
    vjp=ref.cayley_vjp,
)
