"""Characters: predict the character of a text `k` steps ahead, in sequences of `length` steps.

The text is a UTF-8 file, `--data`, or the English one that ships with Python (pydoc_data, whose contents depend on
Python's version). Its last twentieth tests and the twentieth before validates, at most 100,000 characters each; what of
them is written in the rest of the text, too, is said. Loss:
cross-entropy in bits per character. Baselines: log2(classes), and the entropy of the frequencies of single characters.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import isometry
from isometry._rules import check
from isometry.readers import read_text

HELD_OUT, MOST_HELD_OUT = 20, 100_000
PASSAGE = 50  # characters; a copy of twice as many is found
STEPS_AT_ONCE = 20_000  # of all sequences of an evaluation together


class Characters:
    best: ClassVar = ("valid_bits", min)

    def __init__(self, *, length: int, batch: int, data: str | None = None, k: int = 1) -> None:
        k = check.count("k", k, 1)
        text = shipped() if data is None else read_text(data)
        alphabet, ids = np.unique(np.frombuffer(text.encode("utf-32-le"), "<u4"), return_inverse=True)
        self.k, self.span, self.batch = k, length + k, batch
        self.inputs = self.outputs = alphabet.size
        held_out = min(ids.size // HELD_OUT, MOST_HELD_OUT)
        if held_out < self.span:
            where = "the text" if data is None else f"the text {data}"
            least = HELD_OUT * self.span
            raise ValueError(f"length + k must be smaller: {where} has {ids.size} characters, {least} are needed")
        self.ids, self.validation, self.test_part = np.split(ids, [ids.size - 2 * held_out, ids.size - held_out])
        again = repeated(text[: self.ids.size], text[self.ids.size :])
        self.note = f"{again:.0%} of the text that validates and tests is also in the rest" if again >= 0.01 else ""
        frequencies = np.bincount(self.ids[k:]) / self.ids[k:].size
        frequencies = frequencies[frequencies > 0]
        self.baseline = float(-(frequencies * np.log2(frequencies)).sum())
        self.baselines = {
            "entropy of single characters": self.baseline,
            f"log2 of {self.outputs} classes": math.log2(self.outputs),
        }
        self.title = f"Characters, {k} step{'s' * (k > 1)} ahead"

    def _batch(self, ids: np.ndarray, starts: np.ndarray) -> tuple[Tensor, Tensor]:
        x, y = isometry.tasks.characters(ids[starts + np.arange(self.span)[:, None]], self.k, self.outputs)
        return torch.from_numpy(x).float(), torch.from_numpy(y)

    def draw(self, rng: Any) -> tuple[Tensor, Tensor]:
        return self._batch(self.ids, rng.integers(0, self.ids.size - self.span + 1, self.batch))

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(values.flatten(0, 1), target.flatten()) / math.log(2)

    def evaluate(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        return {"valid_bits": self._bits(network, self.validation)}

    def test(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        return {"bits": self._bits(network, self.test_part)}

    def _bits(self, network: Callable[[Tensor], Tensor], ids: np.ndarray) -> float:
        """Bits per character, over sequences in which each character is a target once, except for a rest at the end."""
        starts = np.arange(0, ids.size - self.span + 1, self.span - self.k)
        some = max(1, STEPS_AT_ONCE // self.span)
        total = 0.0
        for part in np.split(starts, range(some, starts.size, some)):
            x, target = self._batch(ids, part)
            total += part.size * self.loss(network(x), target).item()
        return total / starts.size


def repeated(text: str, held_out: str) -> float:
    """The share of the characters held out that stand in passages which the text has, too."""
    known = {text[k : k + PASSAGE] for k in range(0, len(text) - PASSAGE + 1, PASSAGE)}
    covered = np.zeros(len(held_out) + 1, np.int64)  # differences: where passages begin less where they end
    for k in range(len(held_out) - PASSAGE + 1):
        if held_out[k : k + PASSAGE] in known:
            covered[k] += 1
            covered[k + PASSAGE] -= 1
    return float(np.count_nonzero(covered.cumsum()[:-1]) / len(held_out))


def shipped() -> str:
    """Python's own documentation of its topics, some 700,000 characters of plain English, in an order that is drawn
    once, so that similar topics stand in all parts.
    """
    from pydoc_data.topics import topics

    names = sorted(topics)
    return "\n".join(topics[names[k]] for k in np.random.default_rng(0).permutation(len(names)))
