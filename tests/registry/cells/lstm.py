"""The LSTM, whose state is h and c side by side."""

import reference as ref
from registry.cells.entry import Cell, Variant

ARRAYS = {"x": "T B d", "w": "4 n n", "u": "4 n d", "b": "4 n", "h0": "B n", "c0": "B n"}


LSTM = Cell(
    stem="lstm",
    arrays=ARRAYS,
    states=ref.lstm,
    mistakes=(({"nonlinearity": "tanh"}, TypeError, "nonlinearity"),),
    variants={"plain": Variant()},
    first=("h0", "c0"),
    activations=(),
)
