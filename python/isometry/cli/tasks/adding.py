"""Adding: the sum of the two marked values of a sequence of `length` steps.

Loss: mean squared error of the readout of the last state; baseline 1/6, the error of the constant answer 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import isometry
from isometry.cli.tasks._base import Source, Task

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from isometry.cli.settings import Settings


class Adding(Task):
    name = "adding"

    def defaults(self) -> dict[str, Any]:
        return {"length": 400, "batch": 50, "iterations": 5000}

    def keywords(self) -> dict[str, Any]:
        return {"variant": "halves"}

    def open(self, settings: Settings) -> Source:
        assert settings.length is not None
        return AddingSource(settings.length, settings.batch, settings.data_options["variant"])


class AddingSource(Source):
    inputs, outputs, last_only = 2, 1, True
    baseline = 1 / 6

    def __init__(self, length: int, batch: int, variant: Literal["halves", "half_open"]) -> None:
        self.length, self.batch, self.variant = length, batch, variant

    def draw(self, rng: Generator) -> tuple[Tensor, Tensor]:
        import torch

        x, y = isometry.tasks.adding(self.length, self.batch, rng, variant=self.variant)
        return torch.from_numpy(x).float(), torch.from_numpy(y).float()

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        from torch.nn.functional import mse_loss

        return mse_loss(values, target)
