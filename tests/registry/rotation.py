"""Rotations of one direction to another."""

import numpy as np

import reference as ref
from registry.entry import Argument, Large, Object, Variant


def long_vectors(rng, shape, dtype):
    """Vectors of norm at least one: the gradient of a vector grows like 1 / norm."""
    a = ref.normal(rng, *shape, dtype=dtype)
    return (a + a / np.linalg.norm(a, axis=-1, keepdims=True)).astype(dtype)


def pair(rng, n, dtype, batch):
    """Two vectors that are not nearly opposite, where rounding errors grow like the gradient."""
    start, end = (long_vectors(rng, (*batch, n), dtype) for _ in range(2))
    return {"start": start, "end": np.where((start * end).sum(-1, keepdims=True) < 0, -end, end)}


def condition(start, end):
    """Rounding errors grow where the directions are nearly opposite."""
    gap = np.linalg.norm(ref.unit(start) + ref.unit(end), axis=-1) if start.shape[-1] > 1 else np.ones(1)
    return 2 / gap.min(initial=2)


ROTATION = Object(
    stem="rotation",
    arguments={
        "start": Argument(long_vectors, directions=True, powers=(-40, 40)),
        "end": Argument(long_vectors, directions=True, powers=(-40, 40)),
    },
    variants={"plain": Variant("r", pair)},
    large={
        "alone": Large("plain", 2000, lambda rng, dtype: pair(rng, 2000, dtype, ()), 300),
        "stack": Large("plain", 200, lambda rng, dtype: pair(rng, 200, dtype, (64,)), 40),
    },
    matrix=ref.rotation,
    vjp=ref.rotation_vjp,
    condition=condition,
)
