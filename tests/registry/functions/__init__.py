"""Every function once: its arguments, what it refuses. The laws run over all of them in both packages.

A comma in a name begins what tells two entries of one function apart.
"""

import numpy as np

from registry.functions.entry import Draw, Function
from registry.functions.linalg import LINALG
from registry.functions.operators import OPERATORS
from registry.functions.rows import ROWS
from registry.functions.tasks import TASKS

FUNCTIONS: dict[str, Function] = {**OPERATORS, **LINALG, **ROWS, **TASKS}


def calls(face, draw=None):
    """name -> (function, all arguments) of a face."""
    draw = draw or Draw(np.random.default_rng(0))
    own = {name: entry for name, entry in FUNCTIONS.items() if face.name in entry.faces}
    return {
        name: (entry.of(face, name), entry.arguments(face, draw))
        for name, entry in own.items()
        if not (entry.real and draw.complex)
    }
