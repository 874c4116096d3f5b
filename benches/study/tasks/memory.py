"""Copying, adding, and a cue among distractors."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

import isometry

from ._task import Drawn, EstimatedDrawn

DELAY, STEPS, SYMBOLS = 100, 150, 8


class Copying(Drawn):
    """Ten digits, repeated after a delay of 100 steps; the share of digits that are right."""

    inputs, outputs, last_only, chance = 10, 9, False, 1 / 8

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        ids, y = isometry.tasks.copying(DELAY, count, rng)
        return one_hot(torch.from_numpy(ids), self.inputs).float(), torch.from_numpy(y)

    def right(self, values: Tensor, target: Tensor) -> float:
        return super().right(values[-10:], target[-10:])


class Adding(EstimatedDrawn):
    """The sum of two marked numbers among 150; the variance explained."""

    inputs = 2

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        x, y = isometry.tasks.adding(STEPS, count, rng)
        return torch.from_numpy(x).float(), torch.from_numpy(y).float().reshape(count, 1)


class Cue(Drawn):
    """One of eight symbols, announced by a mark at a random step among 150 symbols of noise: which was it?"""

    inputs, outputs, chance = SYMBOLS + 1, SYMBOLS, 1 / SYMBOLS

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        symbols = rng.integers(0, SYMBOLS, (STEPS, count))
        at, columns = rng.integers(0, STEPS // 2, count), range(count)
        x = torch.zeros(STEPS, count, self.inputs)
        x[..., :SYMBOLS] = one_hot(torch.from_numpy(symbols), SYMBOLS)
        x[at, columns, SYMBOLS] = 1
        return x, torch.from_numpy(symbols[at, columns])
