"""Permutations: the product of all permutations of a sequence of `length` steps so far, at every step.

The inputs are elements of the symmetric group `group`, S2 to S5, drawn uniformly: the word problem of a group, by which
the state tracking of networks is tested. Loss: cross-entropy of the answers at all steps; baseline ln |G|. Score: the
share of correct answers. Fixed sequences of `extra` times the length validate and test: the share of correct
answers within the length that was trained on, and beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import isometry
from isometry._rules import check

LETTERS = {"S2": 2, "S3": 3, "S4": 4, "S5": 5}
HELD_OUT = 100  # sequences that validate, and that test
VALIDATION, TEST = 1, 2  # seeds of these


class Permutations:
    best: ClassVar = ("accuracy_beyond", max)

    def __init__(self, *, length: int, batch: int, group: str = "S3", extra: int = 4) -> None:
        check.choice("group", group, *LETTERS)
        self.shape, self.group, self.extra = (length, batch), group, check.count("extra", extra, 2)
        self.elements, self.table = symmetric(LETTERS[group])
        self.inputs = self.outputs = len(self.elements)
        self.baseline = math.log(self.outputs)
        self.baselines = {"guesses": self.baseline, "their accuracy": 1 / self.outputs}
        self.title = f"Products of permutations, {group}, {length:,} steps"

    def draw(self, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        return self._batch(rng, *self.shape)

    def _batch(self, rng: Any, steps: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
        ids = rng.integers(0, self.inputs, (steps, batch))
        products = ids.copy()
        for t in range(1, steps):
            products[t] = self.table[ids[t], products[t - 1]]
        return isometry.tasks.one_hot(ids, self.inputs), products

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(values.flatten(0, 1), target.flatten())

    def score(self, values: Tensor, target: Tensor) -> dict[str, float]:
        return {"accuracy": (values.argmax(-1) == target).float().mean().item()}

    def evaluate(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        within, beyond = self._right(network, VALIDATION)
        return {"accuracy_within": within, "accuracy_beyond": beyond}

    def test(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        within, beyond = self._right(network, TEST)
        return {"within": within, "beyond": beyond}

    def _right(self, network: Callable[[Tensor], Tensor], seed: int) -> tuple[float, float]:
        """The shares of correct answers at the steps up to the trained length, and at those behind it."""
        steps = self.shape[0]
        x, target = self._batch(np.random.default_rng(seed), self.extra * steps, HELD_OUT)
        right = network(torch.from_numpy(x).float()).argmax(-1).numpy(force=True) == target
        return float(right[:steps].mean()), float(right[steps:].mean())


def symmetric(letters: int) -> tuple[np.ndarray, np.ndarray]:
    """The permutations of so many letters in lexicographic order (|G|, n), p(i) in column i, and the table of their
    products: entry (a, b) is the number of a after b.
    """
    elements = np.array(list(permutations(range(letters))))
    number = {tuple(p): k for k, p in enumerate(elements.tolist())}
    products = elements[:, elements]  # (a, b, i) -> a(b(i))
    return elements, np.array([[number[tuple(p)] for p in row] for row in products.tolist()])
