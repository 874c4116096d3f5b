"""Products of plane rotations at chosen pairs."""

import numpy as np

import reference as ref
from registry.draws import turns
from registry.entry import Argument, Large, Object, Variant


def planes(n, m):
    """m pairs of different coordinates; none where there is one coordinate alone."""
    rng, many = np.random.default_rng([n, m]), m if n > 1 else 0
    pairs = [rng.choice(n, 2, replace=False) for _ in range(many)]
    return {"n": n, "pairs": np.reshape(np.array(pairs, int), (many, 2))}


def several(n):
    return planes(n, 2 * n)


def few(n):
    """So few that a recurrence takes the rotations, where `several` go through W."""
    return planes(n, max(n // 4, 1))


def drawn(rng, n, dtype, batch, options=several):
    return {"angles": turns(rng, (*batch, len(options(n)["pairs"])), dtype)}


GIVENS = Object(
    stem="givens",
    arguments={"angles": Argument(turns, lambda n, m: (len(planes(n, m)["pairs"]),), powers=(-20, 6))},
    variants={
        "plain": Variant("r", drawn, options=several),
        "few": Variant("r", lambda rng, n, dtype, batch: drawn(rng, n, dtype, batch, few), options=few),
    },
    sizes={"plain": ((1, 3), (2, 8), (5, 9), (17, 17))},
    large={
        "alone": Large("plain", 512, lambda rng, dtype: drawn(rng, 512, dtype, ()), 400),
        "stack": Large("plain", 60, lambda rng, dtype: drawn(rng, 60, dtype, (64,)), 60),
    },
    matrix=ref.givens,
    vjp=ref.givens_vjp,
    options=planes,
    random=lambda n: {"m": 2 * n if n > 1 else 0},
)
