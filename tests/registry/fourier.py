"""The restricted-capacity unitary matrix."""

import numpy as np

import reference as ref
from registry.draws import turns
from registry.entry import Argument, Large, Object, Variant, real_of


def long_rows(rng, shape, dtype):
    """Rows of norm at least one: the gradient of a row grows like 1 / norm."""
    v = ref.normal(rng, *shape, dtype=dtype)
    return (v + v / np.linalg.norm(v, axis=-1, keepdims=True)).astype(dtype)


def drawn(rng, n, dtype, batch):
    return {"phases": turns(rng, (*batch, 3, n), real_of(dtype)), "vectors": long_rows(rng, (*batch, 2, n), dtype)}


def permutation(n, _m=None):
    """One permutation of each size."""
    return {"permutation": np.random.default_rng(n).permutation(n)}


FOURIER = Object(
    stem="fourier",
    arguments={
        "phases": Argument(turns, powers=(-20, 6)),
        "vectors": Argument(
            long_rows,
            directions=True,
            powers=(-40, 40),
            refused={"a zero row": lambda a: np.concatenate([a[..., :1, :], 0 * a[..., :1, :]], -2)},
        ),
    },
    variants={"plain": Variant("c", drawn, options=permutation)},
    # powers of two, odd primes with a pass of their own, mixed ones, and lengths that go through a convolution
    sizes={"plain": tuple((n, 21) for n in (1, 2, 3, 8, 11, 16, 17, 31, 32, 37, 45, 74, 97, 120, 128))},
    large={
        "alone": Large("plain", 256, lambda rng, dtype: drawn(rng, 256, dtype, ()), 300),
        "stack": Large("plain", 40, lambda rng, dtype: drawn(rng, 40, dtype, (64,)), 20),
    },
    options=permutation,
    condition=lambda **given: 2.0,  # seven factors, however small n is
    matrix=ref.fourier,
    vjp=ref.fourier_vjp,
)
