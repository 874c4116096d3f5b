"""Copying: ten digits, a delay of `length` steps, then the ten digits again.

Loss: cross-entropy over all T + 20 steps; baseline 10 ln 8 / (T + 20), blanks and then guesses. Score: the fraction
of correct answers in the ten answer steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import isometry
from isometry.cli.tasks._base import Source, Task

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from isometry.cli.settings import Settings

DIGITS, CLASSES_IN, CLASSES_OUT = 10, 10, 9  # in: blank, 1..8, marker; out: without the marker


class Copying(Task):
    name = "copying"

    def defaults(self) -> dict[str, Any]:
        return {"length": 1000, "batch": 20, "iterations": 2000}

    def keywords(self) -> dict[str, Any]:
        return {"marker_offset": 1}

    def open(self, settings: Settings) -> Source:
        assert settings.length is not None
        return CopyingSource(settings.length, settings.batch, settings.data_options["marker_offset"])


class CopyingSource(Source):
    inputs, outputs, last_only = CLASSES_IN, CLASSES_OUT, False
    scores = ("recall",)

    def __init__(self, length: int, batch: int, marker_offset: int) -> None:
        self.length, self.batch, self.marker_offset = length, batch, marker_offset
        self.baseline = DIGITS * math.log(8) / (length + 2 * DIGITS)

    def draw(self, rng: Generator) -> tuple[Tensor, Tensor]:
        import torch

        ids, answers = isometry.tasks.copying(self.length, self.batch, rng, marker_offset=self.marker_offset)
        x = torch.from_numpy(isometry.tasks.one_hot(ids, CLASSES_IN)).float()
        return x, torch.from_numpy(answers).long()

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        from torch.nn.functional import cross_entropy

        return cross_entropy(values.flatten(0, 1), target.flatten())

    def score(self, network: Callable[[Tensor], Tensor], values: Tensor, target: Tensor) -> list[float]:  # noqa: ARG002
        right = values[-DIGITS:].argmax(-1) == target[-DIGITS:]
        return [right.float().mean().item()]
