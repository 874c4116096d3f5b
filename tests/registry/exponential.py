"""The exponential of skew matrices."""

import numpy as np

import reference as ref
from registry.draws import halves
from registry.entry import Argument, Large, Object, Variant, real_of


def upper(rng, n, dtype, batch):
    return {"upper": halves(rng, (*batch, n * (n - 1) // 2), dtype)}


def condition(upper, diagonal=0.0):
    """Angles are known to ||A|| eps."""
    return 1 + np.sqrt(2) * np.linalg.norm(upper, axis=-1).max(initial=0) + np.abs(diagonal).max(initial=0)


def proper(w):
    """A real W with the determinant 1: the first column of another is negated."""
    w = np.array(w)
    if not np.iscomplexobj(w):
        w[..., 0] *= np.sign(np.linalg.det(w))[..., None]
    return w


EXPONENTIAL = Object(
    stem="exponential",
    arguments={
        "upper": Argument(halves, powers=(-20, 6)),
        "diagonal": Argument(halves, needs_complex=True, powers=(-20, 6)),
    },
    condition=condition,
    inverse=proper,
    variants={
        "plain": Variant("rc", upper),
        "diagonal": Variant(
            "c",
            lambda rng, n, dtype, batch: {
                **upper(rng, n, dtype, batch),
                "diagonal": 0.5 * ref.normal(rng, *batch, n, dtype=real_of(dtype)),
            },
        ),
    },
    # one matrix a lane, and single ones; n = 1 has no triangle
    sizes=dict.fromkeys(
        ("plain", "diagonal"),
        ((1, 3), (1, 2, (40,)), (2, 2, (40,)), (7, 2, (33,)), (32, 2, (17,)), (33, 2, (3,)), (70, 2)),
    ),
    large={
        "alone": Large("plain", 130, lambda rng, dtype: upper(rng, 130, dtype, ()), 200),
        "stack": Large("plain", 40, lambda rng, dtype: upper(rng, 40, dtype, (32,)), 20),
    },
    matrix=ref.exponential,
    vjp=ref.exponential_vjp,
)
