"""Masked arrays, which NumPy reads under their masks."""

import numpy as np

from isometry._rules import check


def unmasked(argument: str, value: object, depth: int = 64) -> None:
    """Refuse a masked array, also inside lists and tuples, as deep as NumPy reads them."""
    if isinstance(value, np.ndarray):
        if hasattr(value, "mask"):
            check.kind(argument, "an array without a mask", value)
    elif isinstance(value, (list, tuple)) and depth:
        for entry in value:
            if isinstance(entry, (list, tuple, np.ndarray)):
                unmasked(argument, entry, depth - 1)
