"""Waveform: generate `length` samples from nothing; the input is zero, the initial state and the biases are learnt.

The target is the `piece`-th excerpt of an audio file, `--data`, or else a random tone with overtones, drawn from the
seed `piece`; its largest sample is 1. Loss: mean squared error; baseline: the variance of the target. Score: NMSE, 1
for the mean of the target, of the best network.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import mse_loss

import isometry
from isometry._rules import check
from isometry.readers import read_audio


class Waveform:
    inputs, outputs = 1, 1
    best: ClassVar = ("nmse", min)

    def __init__(self, *, length: int, data: str | None = None, piece: int = 0) -> None:
        piece = check.count("piece", piece, 0)
        y = isometry.tasks.random_waveform(piece, length=length) if data is None else excerpt(data, piece, length)
        if np.ptp(y) == 0:
            raise ValueError(f"piece must be another: piece {piece} of {length} samples is constant")
        self.x, self.y = torch.zeros(length, 1, 1), torch.from_numpy(y).float()
        self.baseline = float(y.var())
        self.baselines = {"the mean": self.baseline, "its NMSE": 1.0}
        self.title = f"Sequence generation, {length:,} samples"

    def draw(self, _rng: Any) -> tuple[Tensor, Tensor]:
        return self.x, self.y

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        return mse_loss(values, target)

    def evaluate(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        return {"nmse": float(isometry.metrics.nmse(network(self.x).numpy(), self.y.numpy(), check_finite=False))}

    test = evaluate


def excerpt(data: str, piece: int, length: int) -> np.ndarray:
    """Samples piece * length, ... of a file, divided by the largest; shape (length, 1, 1)."""
    samples, _ = read_audio(data)
    if samples.size < length:
        raise ValueError(f"length must be at most {samples.size}, the samples of {data}")
    y = samples[piece * length : (piece + 1) * length]
    if y.size < length:
        raise ValueError(f"piece must be smaller: {data} has {samples.size} samples, {samples.size // length} pieces")
    return (y / (np.abs(y).max() or 1.0))[:, None, None]
