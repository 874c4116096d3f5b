"""The long expressive memory, whose state is y and z side by side."""

from reference.lem import lem
from registry.cells.entry import Cell, Variant

LEM = Cell(
    stem="lem",
    arrays={"x": "T B d", "w": "4 n n", "u": "4 n d", "b": "4 n", "y0": "B n", "z0": "B n"},
    states=lem,
    mistakes=(
        ({"dt": float("inf")}, ValueError, "dt must be a finite number"),
        ({"dt": "long"}, TypeError, "dt must be a number"),
        ({"nonlinearity": "tanh"}, TypeError, "nonlinearity"),
    ),
    variants={"plain": Variant(), "shorter steps": Variant({"dt": 0.3}), "no step": Variant({"dt": 0.0})},
    first=("y0", "z0"),
    activations=(),
)
