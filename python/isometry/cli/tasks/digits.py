"""Digits: scikit-learn's 1,797 handwritten digits of 8 x 8 pixels (values 0..16), read pixel by pixel.

A fifth of the images, chosen by the seed, is held out. Loss: cross-entropy of the label from the last state; baseline
ln 10. Score: the accuracy on the held-out images.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import isometry
from isometry.cli.errors import require
from isometry.cli.tasks._base import Source, Task

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from isometry.cli.settings import Settings

TRAINING_SHARE, BRIGHTEST, CLASSES = 0.8, 16, 10
SPLIT = 1  # gives the split and the batches separate generators


class Digits(Task):
    name = "digits"
    extras = ("sklearn",)

    def defaults(self) -> dict[str, Any]:
        return {"length": None, "batch": 50, "iterations": 2000}

    def open(self, settings: Settings) -> Source:
        return DigitsSource(settings.batch, settings.seed)


class DigitsSource(Source):
    inputs, outputs, last_only = 1, CLASSES, True
    baseline = math.log(CLASSES)
    scores = ("accuracy",)

    def __init__(self, batch: int, seed: int) -> None:
        import torch

        data = require("sklearn.datasets").load_digits()
        pixels = isometry.tasks.pixels(data.images * (255 / BRIGHTEST))  # (64, images, 1), values 0..1
        count = pixels.shape[1]
        order = np.random.default_rng((seed, SPLIT)).permutation(count)
        cut = int(TRAINING_SHARE * count)
        x, labels = torch.from_numpy(pixels).float(), torch.from_numpy(data.target).long()
        if batch > cut:
            raise ValueError(f"batch: expected at most {cut}, the images to train on, got {batch}")
        self.batch = batch
        self.x, self.labels = x[:, order[:cut]].contiguous(), labels[order[:cut]]
        self.held_x, self.held_labels = x[:, order[cut:]].contiguous(), labels[order[cut:]]

    def draw(self, rng: Generator) -> tuple[Tensor, Tensor]:
        chosen = rng.choice(self.labels.shape[0], self.batch, replace=False)
        return self.x[:, chosen].contiguous(), self.labels[chosen]

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        from torch.nn.functional import cross_entropy

        return cross_entropy(values, target)

    def score(self, network: Callable[[Tensor], Tensor], values: Tensor, target: Tensor) -> list[float]:  # noqa: ARG002
        right = network(self.held_x).argmax(-1) == self.held_labels
        return [right.float().mean().item()]
