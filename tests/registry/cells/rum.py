"""The rotational unit of memory."""

import numpy as np

import reference as ref
from registry.cells.entry import Cell, Variant

MEMORY = {"r0": "B n n"}

RUM = Cell(
    stem="rum",
    arrays={"x": "T B d", "w": "2n n", "u": "2n d", "b": "2n", "embed_weight": "n d", "embed_bias": "n", "h0": "B n"},
    states=ref.rum,
    mistakes=(
        ({"lam": 1, "r0": np.zeros((3, 4, 4), np.float32)}, ValueError, "r0 must have shape"),
        ({"r0": np.eye(4, dtype=np.float32)}, ValueError, "r0 must not be given"),
        ({"lam": 2}, ValueError, "lam must be 0"),
        ({"lam": 0.5}, TypeError, "lam must be an integer"),
        ({"eta": 0}, ValueError, "eta must be a positive number"),
        ({"eta": float("nan")}, ValueError, "eta must be a positive number"),
        ({"eta": "long"}, TypeError, "eta must be"),
    ),
    # each step turns by a rotation that its own state determines, which multiplies what came before
    variants={
        "rotations": Variant(loss=25),
        "of length eta": Variant({"eta": 1.3}, loss=25),
        "memory": Variant({"lam": 1}, MEMORY, loss=25),
        "memory with eta": Variant({"lam": 1, "eta": 0.8}, MEMORY, loss=25),
    },
)
