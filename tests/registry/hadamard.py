"""Products of Hadamard and diagonal matrices."""

import reference as ref
from registry.draws import coins
from registry.entry import Argument, Large, Object, Variant, real_of


def near_signs(rng, shape, dtype):
    """Numbers of both signs, not far from +-1."""
    return (coins(rng, shape, dtype) * rng.uniform(0.5, 1.5, shape)).astype(dtype)


def drawn(rng, n, dtype, batch, rounds):
    return {"signs": near_signs(rng, (*batch, rounds, n), real_of(dtype))}


HADAMARD = Object(
    stem="hadamard",
    arguments={"signs": Argument(near_signs, lambda n, m: (max(m, 1), n), powers=(-20, 20))},
    variants={
        "numbers": Variant("r", lambda rng, n, dtype, batch: drawn(rng, n, dtype, batch, 2)),
        "signs": Variant("r", lambda rng, n, dtype, batch: {"signs": coins(rng, (*batch, 1, n), real_of(dtype))}),
    },
    large={
        "alone": Large("numbers", 1024, lambda rng, dtype: drawn(rng, 1024, dtype, (), 2), 400),
        "stack": Large("numbers", 128, lambda rng, dtype: drawn(rng, 128, dtype, (64,), 2), 40),
    },
    matrix=ref.hadamard,
    vjp=ref.hadamard_vjp,
)
