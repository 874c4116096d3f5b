"""The LSTM, whose state is h and c side by side."""

import numpy as np

import reference as ref
from registry.cells.entry import Cell, Variant

ARRAYS = {"x": "T B d", "w": "4 n n", "u": "4 n d", "b": "4 n", "h0": "B n", "c0": "B n"}


def call(face, given, options):
    """By the function of the face; without one as the layer calls the kernel."""
    if hasattr(face, "lstm"):
        return beside(face.lstm(**given, **options))
    import torch

    from isometry.torch.sequences.lstm import lstm

    x, w, u, b, h0, c0 = (given[name] for name in ARRAYS)
    own = {"start_state": beside(given["start_state"])} if "start_state" in given else {}
    weights = w.flatten(0, 1), u.flatten(0, 1), b.flatten()
    around = options.pop("lengths", None), options.pop("reverse", False)
    return lstm(x, weights, torch.cat((h0, c0), -1), *around, **own, **options)


def beside(pair):
    """h and c in one array."""
    if isinstance(pair[0], np.ndarray):
        return np.concatenate(pair, -1)
    import torch

    return torch.cat(pair, -1)


LSTM = Cell(
    stem="lstm",
    arrays=ARRAYS,
    states=ref.lstm,
    variants={"plain": Variant()},
    first=("h0", "c0"),
    activations=(),
    call=call,
)
