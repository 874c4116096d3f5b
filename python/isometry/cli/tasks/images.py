"""Shared by the image tasks: pixels one after another, the label from the last state.

Loss: cross-entropy; baseline ln(classes). Scores: loss and accuracy on the validation images; the network with the best
accuracy is kept for the test images. An image that also tests neither validates nor trains, one that validates does not
train.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import isometry

Part = tuple[np.ndarray, np.ndarray]  # images (N, height, width) of 0..255, labels (N,)
STEPS_AT_ONCE = 100_000  # of all sequences of an evaluation together, since a network keeps every state


def without(part: Part, *others: Part) -> Part:
    """The images that are in none of the other parts, with their labels."""
    known = {image.tobytes() for images, _ in others for image in images}
    kept = [k for k, image in enumerate(part[0]) if image.tobytes() not in known]
    return part if len(kept) == len(part[1]) else (part[0][kept], part[1][kept])


class Images:
    """A task on three parts of a set of images; `permutation` is that of `isometry.tasks.pixels`."""

    inputs, last_only = 1, True
    best: ClassVar = ("accuracy", max)

    def __init__(
        self, training: Part, validation: Part, test: Part, *, batch: int, permutation: np.ndarray | None = None
    ) -> None:
        sizes = len(training[1]) + len(validation[1])
        training, validation = without(training, validation, test), without(validation, test)
        copies = sizes - len(training[1]) - len(validation[1])
        self.note = f"{copies} images are left out: they test or validate too" if copies else ""
        if not (len(training[1]) and len(validation[1])):
            part = "validation" if len(training[1]) else "training"
            raise ValueError(f"data leave no image for {part}: each tests or validates too")
        if batch > len(training[1]):
            raise ValueError(f"batch must be at most {len(training[1])}, the number of images to train on, not {batch}")
        self.batch, self.permutation = batch, permutation
        self.training, self.validation, self.test_part = training, validation, test
        self.outputs = 1 + max(int(labels.max()) for _, labels in (training, validation, test))
        self.baseline = math.log(self.outputs)
        self.baselines = {"guesses": self.baseline, "their accuracy": 1 / self.outputs}

    def _batch(self, part: Part, chosen: Any) -> tuple[Tensor, Tensor]:
        images, labels = part
        x = isometry.tasks.pixels(images[chosen], self.permutation)
        return torch.from_numpy(np.ascontiguousarray(x, np.float32)), torch.from_numpy(labels[chosen].astype(np.int64))

    def draw(self, rng: Any) -> tuple[Tensor, Tensor]:
        return self._batch(self.training, rng.choice(len(self.training[1]), self.batch, replace=False))

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(values, target)

    def evaluate(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        return dict(zip(("valid_loss", "accuracy"), self._measured(network, self.validation), strict=True))

    def test(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        return dict(zip(("loss", "accuracy"), self._measured(network, self.test_part), strict=True))

    def _measured(self, network: Callable[[Tensor], Tensor], part: Part) -> tuple[float, float]:
        """Loss and accuracy, some images at a time."""
        images, labels = part
        step = max(1, STEPS_AT_ONCE // images[0].size)
        loss = right = 0.0
        for k in range(0, len(labels), step):
            x, target = self._batch(part, slice(k, k + step))
            values = network(x)
            loss += cross_entropy(values, target, reduction="sum").item()
            right += (values.argmax(-1) == target).sum().item()
        return loss / len(labels), right / len(labels)
