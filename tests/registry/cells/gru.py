"""The gated recurrent unit."""

import reference as ref
from registry.cells.entry import Cell, Variant

ARRAYS = {"x": "T B d", "w": "3 n n", "u": "3 n d", "b": "3 n", "h0": "B n"}

GRU = Cell(
    stem="gru",
    arrays=ARRAYS,
    states=ref.gru,
    variants={"before": Variant(), "after": Variant({"reset": "after"}, {"hidden_bias": "n"})},
)
