"""Signals to continue, and a number to estimate from one; the score is the variance that is explained."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ._task import BATCH, HELD_OUT, Estimated, EstimatedDrawn, explained
from .series import folder

STEPS = 200


class Continued(Estimated):
    """At every step of 200 the value some steps ahead, of a long signal whose last fifth tests."""

    inputs, last_only = 1, False

    def __init__(self, signal: np.ndarray, ahead: int) -> None:
        self.ahead = ahead
        scaled = (signal - signal.mean()) / signal.std()
        cut = len(signal) * 4 // 5
        self.parts = [torch.from_numpy(part.astype(np.float32)) for part in (scaled[:cut], scaled[cut:])]

    def pieces(self, part: Tensor, starts: np.ndarray) -> tuple[Tensor, Tensor]:
        found = part[torch.from_numpy(starts + np.arange(STEPS + self.ahead)[:, None])]
        return found[:STEPS, :, None], found[self.ahead :, :, None]

    def draw(self, rng: Any) -> tuple[Tensor, Tensor]:
        return self.pieces(self.parts[0], rng.integers(0, len(self.parts[0]) - STEPS - self.ahead, BATCH))

    def score(self, network: nn.Module) -> float:
        starts = np.linspace(0, len(self.parts[1]) - STEPS - self.ahead - 1, HELD_OUT).astype(int)
        x, target = self.pieces(self.parts[1], starts)
        return explained(network(x)[STEPS // 4 :], target[STEPS // 4 :])


class MackeyGlass(Continued):
    """x' = 0.2 x(t - 17) / (1 + x(t - 17)^10) - 0.1 x, a value each unit of time, Euler's method with ten steps."""

    def __init__(self) -> None:
        delay, count = 170, 50_000
        x = np.full(count + delay, 1.2)
        for t in range(delay, count + delay - 1):
            past = x[t - delay]
            x[t + 1] = x[t] + 0.1 * (0.2 * past / (1 + past**10) - 0.1 * x[t])
        super().__init__(x[delay + 1000 :: 10], ahead=40)


class Ecg(Continued):
    """A heart that beats irregularly (the MIT-BIH arrhythmia database)."""

    def __init__(self) -> None:
        file = folder("sktime") / "datasets" / "data" / "mitdb" / "mitdb.csv"
        super().__init__(np.genfromtxt(file, delimiter=",", skip_header=1)[:, 0], ahead=12)


class Oscillator(EstimatedDrawn):
    """The damping of an oscillator of unknown frequency, phase and amplitude, from 120 noisy values."""

    inputs = 1

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        t = np.arange(120)[:, None]
        damping, frequency = rng.uniform(0, 0.04, count), rng.uniform(0.1, 0.8, count)
        x = np.exp(-damping * t) * np.sin(frequency * t + rng.uniform(0, 2 * np.pi, count))
        x = rng.uniform(0.5, 2, count) * x + 0.1 * rng.standard_normal(x.shape)
        target = (damping - 0.02) / (0.04 / 12**0.5)
        return torch.from_numpy(x.astype(np.float32)[..., None]), torch.from_numpy(target.astype(np.float32)[:, None])
