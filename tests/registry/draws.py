"""Random values of the kinds that arguments have, and mistakes in them."""

import numpy as np

import reference as ref
from registry.entry import real_of


def coins(rng, shape, dtype):
    return rng.choice(np.array([-1.0, 1.0]), shape).astype(dtype)


def turns(rng, shape, dtype):
    return rng.uniform(-np.pi, np.pi, shape).astype(dtype)


def halves(rng, shape, dtype):
    return 0.5 * ref.normal(rng, *shape, dtype=dtype)


def long_columns(rng, shape, dtype):
    """Columns of norm at least one: the gradient of a column grows like 1 / norm."""
    u = ref.normal(rng, *shape, dtype=dtype)
    return (u + u / np.linalg.norm(u, axis=-2, keepdims=True)).astype(dtype)


def soft_sign(rng, shape, dtype):
    """In -1..1, often one of the ends."""
    return np.clip(rng.uniform(-2, 2, shape), -1, 1).astype(dtype)


def last(value, a):
    """The array with its last column set to the value."""
    a = a.copy()
    a[..., -1] = value
    return a


#: Mistakes in signs.
NO_SIGNS = {"zero": lambda a: last(0.0, a), "no sign": lambda a: last(-1.01, a)}


def signs(rng, n, dtype, batch):
    return coins(rng, (*batch, n), real_of(dtype))


def angles(rng, n, dtype, batch):
    return turns(rng, (*batch, n), real_of(dtype))


def any_matrix(rng, shape, dtype):
    return ref.normal(rng, *shape, dtype=dtype) / np.sqrt(shape[-1]).astype(real_of(dtype))
