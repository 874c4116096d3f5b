"""The rotational unit of memory."""

import reference as ref
from registry.cells.entry import Cell, Variant

MEMORY = {"r0": "B n n"}

RUM = Cell(
    stem="rum",
    arrays={"x": "T B d", "w": "2n n", "u": "2n d", "b": "2n", "embed_weight": "n d", "embed_bias": "n", "h0": "B n"},
    states=ref.rum,
    # each step turns by a rotation that its own state determines, which multiplies what came before
    variants={
        "rotations": Variant(loss=25),
        "of length eta": Variant({"eta": 1.3}, loss=25),
        "memory": Variant({"lam": 1}, MEMORY, loss=25),
        "memory with eta": Variant({"lam": 1, "eta": 0.8}, MEMORY, loss=25),
    },
)
