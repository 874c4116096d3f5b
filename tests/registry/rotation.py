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


ROTATION = Object(
    cls="Rotation",
    arguments={
        "start": Argument(lambda n, m: (n,), long_vectors, real=True),
        "end": Argument(lambda n, m: (n,), long_vectors, real=True),
    },
    variants={"plain": Variant("r", pair)},
    large={
        "alone": Large("plain", 2000, lambda rng, dtype: pair(rng, 2000, dtype, ()), 300),
        "stack": Large("plain", 200, lambda rng, dtype: pair(rng, 200, dtype, (64,)), 40),
    },
    matrix=ref.rotation,
    vjp=ref.rotation_vjp,
    required=2,
)
