"""Digits: scikit-learn's 1,797 handwritten digits of 8 x 8 pixels (values 0..16), read pixel by pixel.

A fifth of the images, chosen by the seed, is held out. Loss: cross-entropy of the label from the last state; baseline
ln 10. Score: the accuracy on the held-out images.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import isometry

TRAINING_SHARE, BRIGHTEST, CLASSES = 0.8, 16, 10
SPLIT = 1  # gives the split and the batches separate generators


class Digits:
    inputs, outputs, last_only = 1, CLASSES, True
    baseline = math.log(CLASSES)
    title = "Handwritten digits, pixel by pixel"

    def __init__(self, *, batch: int, seed: int) -> None:
        from sklearn.datasets import load_digits

        data = load_digits()
        pixels = isometry.tasks.pixels(data.images * (255 / BRIGHTEST))  # (64, images, 1), values 0..1
        order = np.random.default_rng((seed, SPLIT)).permutation(pixels.shape[1])
        cut = int(TRAINING_SHARE * order.size)
        if batch > cut:
            raise ValueError(f"batch must be at most {cut}, the number of images to train on, not {batch}")
        self.batch = batch
        x, labels = torch.from_numpy(pixels).float(), torch.from_numpy(data.target).long()
        self.x, self.labels = x[:, order[:cut]].contiguous(), labels[order[:cut]]
        self.held_x, self.held_labels = x[:, order[cut:]].contiguous(), labels[order[cut:]]

    def draw(self, rng: Any) -> tuple[Tensor, Tensor]:
        chosen = rng.choice(self.labels.shape[0], self.batch, replace=False)
        return self.x[:, chosen].contiguous(), self.labels[chosen]

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(values, target)

    def evaluate(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        right = network(self.held_x).argmax(-1) == self.held_labels
        return {"accuracy": right.float().mean().item()}
