"""Tasks that the guide is not made from: on them its first picks are tried."""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ._task import Drawn, EstimatedDrawn
from .series import Series

Appliances = partial(Series, "ACSF1", every=4)  # which of ten appliances draws this power, 365 steps


class Position(EstimatedDrawn):
    """Dead reckoning: where a vehicle is after 100 steps, from noisy speeds and turns of each step."""

    inputs, outputs, steps = 2, 2, 100

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        changes = rng.standard_normal((2, self.steps, count)) * (rng.random((2, self.steps, count)) < 0.05)
        speed, turn = np.abs(1 + 0.5 * changes[0].cumsum(0)), 0.1 * changes[1].cumsum(0)
        where = (speed * np.exp(1j * turn.cumsum(0))).sum(0) / self.steps
        x = np.stack([speed, 10 * turn], -1) + 0.05 * rng.standard_normal((self.steps, count, 2))
        target = np.stack([where.real, where.imag], -1)
        return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(target.astype(np.float32))


class Brackets(Drawn):
    """Which of three kinds of bracket must close next, at every step of 64 at which one is open, at most four deep."""

    inputs, outputs, last_only, steps, kinds, depth = 6, 3, False, 64, 3, 4
    chance = 1 / 3

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        symbols, target = np.zeros((self.steps, count), np.int64), np.full((self.steps, count), -100)
        for column in range(count):
            open_: list[int] = []
            opens, kind = rng.random(self.steps) < 0.55, rng.integers(0, self.kinds, self.steps)
            for t in range(self.steps):
                if not open_ or (opens[t] and len(open_) < self.depth):
                    open_.append(kind[t])
                    symbols[t, column] = kind[t]
                else:
                    symbols[t, column] = self.kinds + open_.pop()
                if open_:
                    target[t, column] = open_[-1]
        return one_hot(torch.from_numpy(symbols), self.inputs).float(), torch.from_numpy(target)

    def right(self, values: Tensor, target: Tensor) -> float:
        asked = target >= 0
        return float((values.argmax(-1) == target)[asked].float().mean())
