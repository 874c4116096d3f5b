"""Tasks and measures of sequences, which NumPy alone has."""

import numpy as np

from registry.functions.entry import Function
from registry.functions.linalg import NUMPY


def task(arrays=lambda draw: {}, checks=False, **options):
    return Function(arrays, options, checks=checks, faces=NUMPY, real=True)


TASKS = {
    "tasks.adding": task(steps=5, batch=2, rng=None, variant="halves"),
    "tasks.copying": task(steps=5, batch=2, rng=None, marker_offset=1),
    "tasks.permutations": task(steps=5, batch=2, rng=None, group="S3"),
    "tasks.one_hot": task(ids=[1, 2], classes=3),
    "tasks.pixels": task(lambda draw: {"images": draw(1, 2, 2)}, True, permutation=None),
    "tasks.characters": task(ids=[[0], [1], [2]], k=1, classes=3),
    "tasks.waveform": task(
        lambda draw: {name: draw(1) for name in ("frequencies", "amplitudes", "phases")}, True, length=5, rate=9.0
    ),
    "tasks.random_waveform": task(rng=None, length=5, rate=9.0, partials=2),
    "tasks.spectrogram": task(lambda draw: {"audio": draw(9)}, True, window=4, hop=2, scale=1.0, floor=1.0),
    "metrics.nmse": task(lambda draw: {"output": draw(2), "target": draw(2)}, True, normaliser="power"),
    "metrics.masked_mse": task(lambda draw: {"output": draw(2, 1), "target": draw(2, 1)}, True, lengths=np.array([2])),
}
