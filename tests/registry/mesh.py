"""Meshes of 2 x 2 blocks."""

import numpy as np

import reference as ref
from isometry._objects import declaration
from registry.draws import NO_SIGNS, angles, coins, signs, turns
from registry.entry import Argument, Large, Object, Variant, is_complex, real_of


def pairs(n, **plan):
    return sum(map(len, ref.mesh_pairs(n, **plan)))


def theta(rng, n, dtype, batch, plan):
    """With phi and phases if complex."""
    count, real = pairs(**plan(n)), real_of(dtype)
    own = {"theta": turns(rng, (*batch, count), real)}
    if is_complex(dtype):
        own |= {"phi": turns(rng, (*batch, count), real), "phases": angles(rng, n, dtype, batch)}
    return own


def brick(n):
    return {"n": n, "layers": 3}


def right(n):
    """More layers than reach every W."""
    return {"n": n, "layers": n + 2, "first": "right"}


def fft(n):
    return {"n": n, "layout": "fft"}


def any_plan(n, m):
    """A plan for every m."""
    if m == 0:
        return fft(n) if declaration("mesh").exists["fft"](n) else {"n": n, "layers": 2}
    return {"n": n, "layers": m, "first": ("left", "right")[m % 2]}


MESH = Object(
    stem="mesh",
    arguments={
        "theta": Argument(turns, lambda n, m: (pairs(**any_plan(n, m)),), powers=(-20, 6)),
        "phi": Argument(turns, lambda n, m: (pairs(**any_plan(n, m)),), powers=(-20, 6)),
        "phases": Argument(turns, powers=(-20, 6)),
        "signs": Argument(coins, refused=NO_SIGNS),
    },
    variants={
        "brick": Variant("rc", lambda rng, n, dtype, batch: theta(rng, n, dtype, batch, brick), options=brick),
        "signs": Variant(
            "r",
            lambda rng, n, dtype, batch: {**theta(rng, n, dtype, batch, right), "signs": signs(rng, n, dtype, batch)},
            options=right,
        ),
        "phi, signs": Variant(
            "c",
            lambda rng, n, dtype, batch: {
                **theta(rng, n, real_of(dtype), batch, right),
                "phi": angles(rng, pairs(**right(n)), dtype, batch),
                "signs": signs(rng, n, dtype, batch),
            },
            options=right,
        ),
        "fft": Variant("rc", lambda rng, n, dtype, batch: theta(rng, n, dtype, batch, fft), options=fft),
    },
    sizes={"brick": ((1, 7), (2, 7), (33, 7)), "signs": ((34, 7),), "fft": ((1, 7), (2, 7), (128, 7))},
    large={
        "alone": Large("brick", 512, lambda rng, dtype: theta(rng, 512, dtype, (), brick), 400),
        "stack": Large("brick", 60, lambda rng, dtype: theta(rng, 60, dtype, (64,), brick), 20),
    },
    matrix=ref.mesh,
    vjp=ref.mesh_vjp,
    inverse=np.asarray,
    options=any_plan,
    random=brick,
)
