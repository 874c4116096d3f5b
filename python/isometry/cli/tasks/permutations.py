"""Permutations: the product of all permutations of a sequence of `length` steps so far, at every step.

The inputs are elements of the symmetric group `group`, S2 to S5, drawn uniformly. Loss: cross-entropy of the answers at
all steps; baseline ln |G|. Score: the share of correct answers. Fixed sequences of `extra` times the length validate
and test: the share of correct answers within the length that was trained on, and beyond it.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import isometry
from isometry._rules import check
from isometry.tasks.permutations import LETTERS

HELD_OUT = 100  # sequences that validate, and that test
VALIDATION, TEST = 1, 2  # seeds of these


class Permutations:
    best: ClassVar = ("accuracy_beyond", max)

    def __init__(
        self, *, length: int, batch: int, group: Literal["S2", "S3", "S4", "S5"] = "S3", extra: int = 4
    ) -> None:
        check.choice("group", group, *LETTERS)
        self.shape, self.group, self.extra = (length, batch), group, check.count("extra", extra, 2)
        self.inputs = self.outputs = math.factorial(LETTERS[group])
        self.baseline = math.log(self.outputs)
        self.baselines = {"guesses": self.baseline, "their accuracy": 1 / self.outputs}
        self.title = f"Products of permutations, {group}, {length:,} steps"

    def draw(self, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        return self._batch(rng, *self.shape)

    def _batch(self, rng: Any, steps: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
        ids, products = isometry.tasks.permutations(steps, batch, rng, group=self.group)
        return isometry.tasks.one_hot(ids, self.inputs), products

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(values.flatten(0, 1), target.flatten())

    def score(self, values: Tensor, target: Tensor) -> dict[str, float]:
        return {"accuracy": (values.argmax(-1) == target).float().mean().item()}

    def evaluate(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        return dict(zip(("accuracy_within", "accuracy_beyond"), self._right(network, VALIDATION), strict=True))

    def test(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        return dict(zip(("within", "beyond"), self._right(network, TEST), strict=True))

    def _right(self, network: Callable[[Tensor], Tensor], seed: int) -> tuple[float, float]:
        """The shares of correct answers at the steps up to the trained length, and at those behind it."""
        steps = self.shape[0]
        x, target = self._batch(np.random.default_rng(seed), self.extra * steps, HELD_OUT)
        right = network(torch.from_numpy(x).float()).argmax(-1).numpy(force=True) == target
        return float(right[:steps].mean()), float(right[steps:].mean())
