"""A hidden state to follow through noise and missing observations, with an answer at every step."""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._task import EstimatedDrawn


def observed(rng: Any, clean: np.ndarray, noise: float, target: np.ndarray) -> tuple[Tensor, Tensor]:
    """`clean` (T, B, ...) with noise; in a third of the steps, five in a row on average, zeros in its place.

    The last input says whether it is seen.
    """
    seen = np.empty((*clean.shape[:2], 1))
    seen[0] = 1
    for before, now in pairwise(seen):
        now[:] = rng.random(now.shape) < np.where(before == 1, 0.9, 0.2)
    x = np.concatenate([seen * (clean + noise * rng.standard_normal(clean.shape)), seen], -1)
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(target.astype(np.float32))


class Pendulum(EstimatedDrawn):
    """Where a pendulum is, as sine and cosine, from 60 noisy pictures of 8 x 8 pixels: damped, and pushed at random."""

    inputs, outputs, last_only, steps, pixels = 65, 2, False, 60, 8

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        angle, speed = rng.uniform(-np.pi, np.pi, count), rng.standard_normal(count)
        angles = np.empty((self.steps, count))
        for now in angles:
            for _ in range(2):
                speed += 0.1 * (-4 * np.sin(angle) - 0.1 * speed) + 0.15 * rng.standard_normal(count)
                angle = angle + 0.1 * speed
            now[:] = angle
        where = np.stack([np.sin(angles), np.cos(angles)], -1)
        line = np.linspace(-1.4, 1.4, self.pixels)
        across, down = (np.exp(-((line - axis[..., None]) ** 2) / 0.1) for axis in np.moveaxis(where, -1, 0))
        pictures = (across[..., None, :] * down[..., None]).reshape(self.steps, count, -1)
        return observed(rng, pictures, 0.4, where)


class Lorenz(EstimatedDrawn):
    """The three coordinates of Lorenz' system at 60 steps of 0.04, from one, with noise a quarter of its spread."""

    inputs, outputs, last_only, steps = 2, 3, False, 60

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        state = rng.normal([[0], [0], [24]], 8, (3, count))
        states = np.empty((self.steps + 20, 3, count))
        for now in states:
            for _ in range(4):
                x, y, z = state
                state = state + 0.01 * np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
            now[:] = state
        scaled = (states[20:] - np.array([0, 0, 23.5])[:, None]) / np.array([7.9, 9.0, 8.6])[:, None]
        target = np.moveaxis(scaled, 1, -1)
        return observed(rng, target[..., :1], 0.25, target)
