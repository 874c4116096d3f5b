"""Signals in noise: how a carrier is modulated, which tone sounds, which way a frequency goes."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._task import Drawn

#: The constellation of each modulation; None for frequency-shift keying.
POINTS = {
    "BPSK": np.array([1, -1]),
    "QPSK": np.exp(0.25j * np.pi * np.arange(1, 8, 2)),
    "8PSK": np.exp(0.25j * np.pi * np.arange(8)),
    "16QAM": (np.arange(-3, 4, 2)[:, None] + 1j * np.arange(-3, 4, 2)).ravel() / 10**0.5,
    "4ASK": np.arange(-3, 4, 2) / 5**0.5,
    "2FSK": None,
}
SAMPLES = 8  # of a symbol


class Radio(Drawn):
    """I and Q of 32 symbols in one of six modulations: unknown phase and offset of frequency, noise of 10 dB."""

    inputs, outputs, chance = 2, len(POINTS), 1 / len(POINTS)
    steps = 256

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        labels = rng.integers(0, len(POINTS), count)
        x = np.stack([self.signal(rng, list(POINTS.values())[k]) for k in labels], 1)
        x = x + np.sqrt(0.05) * (rng.standard_normal(x.shape) + 1j * rng.standard_normal(x.shape))
        return torch.from_numpy(np.stack([x.real, x.imag], -1).astype(np.float32)), torch.from_numpy(labels)

    def signal(self, rng: Any, points: np.ndarray | None) -> np.ndarray:
        count, t = self.steps // SAMPLES, np.arange(self.steps)
        if points is None:
            baseband = np.exp(1j * np.cumsum(np.repeat(rng.choice([-1, 1], count) * 0.25, SAMPLES)))
        else:
            baseband = np.repeat(points[rng.integers(0, len(points), count)], SAMPLES)
        turn = rng.uniform(0, 2 * np.pi) + t * rng.normal(0, 0.01)
        moved: np.ndarray = np.roll(baseband, rng.integers(SAMPLES)) * np.exp(1j * turn)
        return moved


class Tones(Drawn):
    """Which of eight neighbouring frequencies sounds for 128 samples, in noise of three times its power?"""

    inputs, outputs, chance = 1, 8, 1 / 8
    steps = 128

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        labels, t = rng.integers(0, self.outputs, count), np.arange(self.steps)[:, None]
        tone = np.sin((0.2 + 0.1 * labels) * t + rng.uniform(0, 2 * np.pi, count))
        x = tone + np.sqrt(1.5) * rng.standard_normal(tone.shape)
        return torch.from_numpy(x.astype(np.float32)[..., None]), torch.from_numpy(labels)


class Chirps(Drawn):
    """Does the frequency rise, fall, rise and fall, or fall and rise? 200 samples of any pitch, with noise."""

    inputs, outputs, chance = 1, 4, 1 / 4
    steps = 200

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        labels, t = rng.integers(0, 4, count), np.linspace(0, 1, self.steps)[:, None]
        shapes = np.stack([t, 1 - t, 1 - abs(2 * t - 1), abs(2 * t - 1)])[labels, :, 0].T
        frequency = rng.uniform(0.1, 0.5, count) + rng.uniform(0.2, 0.5, count) * shapes
        x = np.sin(np.cumsum(frequency, 0) + rng.uniform(0, 2 * np.pi, count))
        x = x + 0.5 * rng.standard_normal(x.shape)
        return torch.from_numpy(x.astype(np.float32)[..., None]), torch.from_numpy(labels)
