"""Tasks and measures of sequences, which NumPy alone has."""

import numpy as np

from registry.functions.entry import Function
from registry.functions.linalg import NUMPY


def task(arrays=lambda draw: {}, checks=False, refused=(), **options):
    return Function(arrays, options, refused, checks=checks, faces=NUMPY, real=True)


def wrong(**values):
    """Each of these values, alone, is refused by name."""
    return tuple(({name: value}, ValueError, f"^{name} must ") for name, each in values.items() for value in each)


COUNT, POSITIVE = (0, -1, 10**30), (0.0, -1.0, np.nan, np.inf)
DRAWN = wrong(steps=COUNT, batch=COUNT)
PLACES = wrong(permutation=(np.arange(5), np.arange(4) + 1, np.arange(4)[None]))
TASKS = {
    "tasks.adding": task(refused=DRAWN, steps=5, batch=2, rng=None, variant="halves"),
    "tasks.copying": task(refused=(*DRAWN, *wrong(marker_offset=(2, -1))), steps=5, batch=2, rng=None, marker_offset=1),
    "tasks.permutations": task(refused=(*DRAWN, *wrong(group=("A5", "S6"))), steps=5, batch=2, rng=None, group="S3"),
    "tasks.one_hot": task(refused=wrong(classes=COUNT, ids=(-1, [0, 3])), ids=[1, 2], classes=3),
    "tasks.pixels": task(lambda draw: {"images": draw(1, 2, 2)}, True, PLACES, permutation=None),
    "tasks.characters": task(refused=wrong(classes=COUNT, k=(0, 3)), ids=[[0], [1], [2]], k=1, classes=3),
    "tasks.waveform": task(
        lambda draw: {name: draw(1) for name in ("frequencies", "amplitudes", "phases")},
        True,
        wrong(length=COUNT, rate=POSITIVE),
        length=5,
        rate=9.0,
    ),
    "tasks.random_waveform": task(
        refused=wrong(length=COUNT, rate=POSITIVE, partials=COUNT), rng=None, length=5, rate=9.0, partials=2
    ),
    "tasks.spectrogram": task(
        lambda draw: {"audio": draw(9)},
        True,
        wrong(window=(0, -2, 7, 10**30), hop=COUNT, scale=POSITIVE, floor=POSITIVE),
        window=4,
        hop=2,
        scale=1.0,
        floor=1.0,
    ),
    "metrics.nmse": task(lambda draw: {"output": draw(2), "target": draw(2)}, True, normaliser="power"),
    "metrics.masked_mse": task(lambda draw: {"output": draw(2, 1), "target": draw(2, 1)}, True, lengths=np.array([2])),
}
