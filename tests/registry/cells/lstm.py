"""The LSTM, whose state is h and c side by side."""

import numpy as np

import reference as ref
from registry.cells.entry import Cell, Variant


def call(face, given, options):
    """By the function of the face; without one as the layer calls the kernel."""
    if not hasattr(face, "lstm"):
        import torch

        from isometry.torch.sequences.lstm import lstm

        given = dict(given)
        h0 = torch.cat([given.pop(name) for name in ("h0", "c0")], -1)
        x, w, u, b = (given.pop(name) for name in ("x", "w", "u", "b"))
        weights = w.flatten(0, 1), u.flatten(0, 1), b.flatten()
        return lstm(x, weights, h0, options.pop("lengths", None), options.pop("reverse", False), **given, **options)
    if "start_state" in given:
        own, n = given["start_state"], given["w"].shape[-1]
        given = {**given, "start_state": (own[..., :n], own[..., n:])}
    h, c = face.lstm(**given, **options)
    if isinstance(h, np.ndarray):
        return np.concatenate((h, c), -1)
    import torch

    return torch.cat((h, c), -1)


LSTM = Cell(
    stem="lstm",
    arrays={"x": "T B d", "w": "4 n n", "u": "4 n d", "b": "4 n", "h0": "B n", "c0": "B n"},
    states=ref.lstm,
    variants={"plain": Variant(numpy=False)},
    first=("h0", "c0"),
    activations=(),
    call=call,
)
