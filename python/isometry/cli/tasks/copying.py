"""Copying: ten digits, a delay of `length` steps, then the ten digits again.

Loss: cross-entropy over all T + 20 steps; baseline 10 ln 8 / (T + 20), blanks and then guesses. Score: the fraction
of correct answers in the ten answer steps.
"""

import math
from typing import Any

from torch import Tensor
from torch.nn.functional import cross_entropy

import isometry

DIGITS, CLASSES_IN, CLASSES_OUT = 10, 10, 9  # in: blank, 1..8, marker; out: without the marker


class Copying:
    inputs, outputs = CLASSES_IN, CLASSES_OUT

    def __init__(self, *, length: int, batch: int, marker_offset: int = 1) -> None:
        self.arguments = {"steps": length, "batch": batch, "marker_offset": marker_offset}
        self.baseline = DIGITS * math.log(8) / (length + 2 * DIGITS)
        self.baselines = {"blanks, then guesses": self.baseline}
        self.title = f"Copying problem, delay {length:,}"

    def draw(self, rng: Any) -> tuple[Any, Any]:
        ids, answers = isometry.tasks.copying(rng=rng, **self.arguments)
        return isometry.tasks.one_hot(ids, CLASSES_IN), answers

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(values.flatten(0, 1), target.flatten())

    def score(self, values: Tensor, target: Tensor) -> dict[str, float]:
        right = values[-DIGITS:].argmax(-1) == target[-DIGITS:]
        return {"recall": right.float().mean().item()}
