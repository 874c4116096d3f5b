"""The unitary circulant matrix."""

import reference as ref
from registry.draws import turns
from registry.entry import Argument, Large, Object, Variant, real_of


def draw(rng, n, dtype, batch):
    return {"phases": turns(rng, (*batch, n), real_of(dtype))}


CIRCULANT = Object(
    stem="circulant",
    arguments={"phases": Argument(turns, powers=(-20, 6))},
    variants={"plain": Variant("c", draw)},
    large={
        "alone": Large("plain", 300, lambda rng, dtype: draw(rng, 300, dtype, ()), 300),
        "stack": Large("plain", 40, lambda rng, dtype: draw(rng, 40, dtype, (64,)), 20),
    },
    matrix=ref.circulant,
    vjp=ref.circulant_vjp,
)
