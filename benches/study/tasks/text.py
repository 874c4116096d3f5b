"""The next character of a text that ships with Python; the score is the share of bits that are saved."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from isometry.cli.tasks.characters import shipped

from ._task import BATCH, HELD_OUT, Task

STEPS = 100
MODULES = ("argparse", "ast", "datetime", "decimal", "difflib", "doctest", "inspect", "pickle", "typing", "zipfile")


class Text(Task):
    """English (the documentation of Python) or Python's own source; the last tenth tests."""

    last_only = False
    chance = 0.0

    def __init__(self, language: str) -> None:
        text = shipped() if language == "english" else source()
        alphabet, ids = np.unique(np.frombuffer(text.encode("utf-32-le"), "<u4"), return_inverse=True)
        self.inputs = self.outputs = len(alphabet)
        cut = len(ids) * 9 // 10
        self.parts = torch.from_numpy(ids[:cut].astype(np.int64)), torch.from_numpy(ids[cut:].astype(np.int64))
        frequencies = (np.bincount(ids[:cut], minlength=len(alphabet)) + 1) / (cut + len(alphabet))
        self.nats = float(-np.log(frequencies[ids[cut:]]).mean())

    def pieces(self, part: Tensor, starts: np.ndarray) -> tuple[Tensor, Tensor]:
        found = part[torch.from_numpy(starts + np.arange(STEPS + 1)[:, None])]
        return one_hot(found[:-1], self.inputs).float(), found[1:]

    def draw(self, rng: Any) -> tuple[Tensor, Tensor]:
        return self.pieces(self.parts[0], rng.integers(0, len(self.parts[0]) - STEPS, BATCH))

    def score(self, network: nn.Module) -> float:
        x, target = self.pieces(self.parts[1], np.linspace(0, len(self.parts[1]) - STEPS - 1, HELD_OUT).astype(int))
        return max(0.0, 1 - float(cross_entropy(network(x).flatten(0, 1), target.flatten())) / self.nats)


def source() -> str:
    """Of some modules of the standard library, ASCII only."""
    where = Path(np.__file__).parents[1]
    files = [Path(__import__(name).__file__ or where) for name in MODULES]
    return "".join(file.read_text(encoding="utf-8").encode("ascii", "ignore").decode() for file in files)
