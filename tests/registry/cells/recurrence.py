"""h_t = phi(W h_{t-1} + V x_t + b)."""

import numpy as np

import reference as ref
from registry.cells.entry import BLOCKS, CAYLEY, DENSE, REFLECTION, REFLECTIONS, ROTATION, Cell, Variant


def states(transition, x, input_weight, **arguments):
    return ref.recurrence(transition, x, input_weight, **arguments)


RECURRENCE = Cell(
    stem="recurrence",
    arrays={"x": "T B d", "input_weight": "n d", "h0": "B n", "bias": "n"},
    states=states,
    mistakes=(({"activation_on": "output"}, ValueError, "activation_on"),),
    variants={
        "by factors": Variant(transition=REFLECTION),
        "by W": Variant(transition=CAYLEY),
        "by rows": Variant(transition=ROTATION, loss=4),
        "any matrix": Variant(transition=DENSE, loss=4),
        "complex, by factors": Variant(transition=REFLECTION, dtype=np.complex128),
        "complex, by W": Variant(transition=REFLECTIONS, dtype=np.complex128),
        "by blocks": Variant(transition=BLOCKS),
        "on the input": Variant({"activation_on": "input"}, transition=REFLECTIONS, dtype=np.complex128),
        "on the input, real": Variant({"activation_on": "input"}, transition=CAYLEY),
    },
)
