"""The gated recurrent unit."""

import numpy as np

import reference as ref
from registry.cells.entry import Cell, Variant

ARRAYS = {"x": "T B d", "w": "3 n n", "u": "3 n d", "b": "3 n", "h0": "B n"}
BIAS = np.zeros(4, np.float32)

GRU = Cell(
    stem="gru",
    arrays=ARRAYS,
    states=ref.gru,
    mistakes=(
        ({"reset": "never"}, ValueError, "reset must be 'before' or 'after'"),
        ({"hidden_bias": BIAS, "reset": "before"}, ValueError, "hidden_bias must not be given"),
    ),
    variants={"before": Variant(), "after": Variant({"reset": "after"}, {"hidden_bias": "n"})},
)
