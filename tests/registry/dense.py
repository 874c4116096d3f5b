"""Matrices as they are."""

import reference as ref
from registry.draws import any_matrix
from registry.entry import Argument, Large, Object, Variant


def weight(rng, n_out, n_in, dtype, batch):
    return {"weight": any_matrix(rng, (*batch, n_out, n_in), dtype)}


#: Calls that compute nothing.
COPIES = ("matrix", "matrix_vjp")

DENSE = Object(
    stem="dense",
    arguments={"weight": Argument(any_matrix, lambda n, m: (m, n), powers=(-30, 30))},
    variants={
        "square": Variant("rc", lambda rng, n, dtype, batch: weight(rng, n, n, dtype, batch)),
        "wide": Variant("rc", lambda rng, n, dtype, batch: weight(rng, n - 2, n, dtype, batch), square=False),
        "tall": Variant("rc", lambda rng, n, dtype, batch: weight(rng, n + 3, n, dtype, batch), square=False),
    },
    sizes={"square": ((1, 1), (16, 16), (120, 70)), "wide": ((3, 3), (31, 5), (257, 9)), "tall": ((1, 2), (64, 33))},
    large={"alone": Large("square", 400, lambda rng, dtype: weight(rng, 400, 400, dtype, ()), 300, idle=COPIES)},
    matrix=ref.dense,
    vjp=ref.dense_vjp,
)
