"""What a task is: batches, a loss, and one score between chance (0 or more) and 1, which is perfect."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import PackedSequence, pack_sequence

BATCH = 32
HELD_OUT = 256  # sequences that test, where there are as many as wanted


class Task:
    """`inputs` and `outputs` of the network, which reads the last state only if `last_only`; the score of `chance`."""

    inputs: int
    outputs: int
    last_only = True
    chance: float

    def draw(self, rng: Any) -> tuple[Any, Any]:
        """A batch to train on, x of shape (T, B, inputs) or packed, and its target."""
        raise NotImplementedError

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(values.reshape(-1, self.outputs), target.reshape(-1))

    def score(self, network: nn.Module) -> float:
        """Of data that were not trained on."""
        raise NotImplementedError

    def update(self, network: nn.Module, rng: Any) -> Tensor:
        """The loss of one update."""
        x, target = self.draw(rng)
        return self.loss(network(x), target)


class Drawn(Task):
    """A task whose sequences are drawn afresh: `sequences(rng, count)` gives x (T, count, inputs) and targets."""

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def draw(self, rng: Any) -> tuple[Tensor, Tensor]:
        return self.sequences(rng, BATCH)

    def right(self, values: Tensor, target: Tensor) -> float:
        return float((values.argmax(-1) == target).float().mean())

    def score(self, network: nn.Module) -> float:
        x, target = self.sequences(np.random.default_rng(10_007), HELD_OUT)
        return self.right(network(x), target)


class Estimated(Task):
    """Numbers that are estimated from a sequence, by the squares of their errors."""

    outputs, chance = 1, 0.0

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        return (values - target).square().mean()


class EstimatedDrawn(Estimated, Drawn):
    """The score is the variance explained."""

    def right(self, values: Tensor, target: Tensor) -> float:
        return explained(values, target)


class Classified(Task):
    """Sequences (length, inputs) of a training and a test set, with labels."""

    def __init__(self, train: list[Tensor], labels: Tensor, test: list[Tensor], test_labels: Tensor) -> None:
        joined = torch.cat(train)
        mean, deviation = joined.mean(0), joined.std(0).clamp(min=1e-6)
        self.train, self.test = ([(x - mean) / deviation for x in part] for part in (train, test))
        self.labels, self.test_labels = labels, test_labels
        self.inputs, self.outputs = joined.shape[1], int(labels.max()) + 1
        self.chance = float(torch.bincount(test_labels).max() / len(test_labels))

    def draw(self, rng: Any) -> tuple[Any, Tensor]:
        chosen = rng.choice(len(self.train), BATCH)
        return together([self.train[k] for k in chosen]), self.labels[chosen]

    def score(self, network: nn.Module) -> float:
        right = 0
        for first in range(0, len(self.test), HELD_OUT):
            part = slice(first, first + HELD_OUT)
            right += int((network(together(self.test[part])).argmax(-1) == self.test_labels[part]).sum())
        return right / len(self.test)


def together(sequences: list[Tensor]) -> Tensor | PackedSequence:
    """Of one length (T, B, inputs), of several packed."""
    same = len({len(x) for x in sequences}) == 1
    return torch.stack(sequences, 1) if same else pack_sequence(sequences, enforce_sorted=False)


def explained(values: Tensor, target: Tensor) -> float:
    """The part of the variance of the target that is explained, at least 0."""
    return max(0.0, 1 - float((values - target).square().mean() / target.var()))
