"""Speakers told apart by a vowel: real sequences of different lengths, a task of one's own, every layer.

The Japanese Vowels data (Kudo, Toyama, Shimbo 1999; the UEA archive) are 640 utterances of the vowels /ae/ by nine men,
7 to 29 frames of 12 cepstral coefficients each; 270 are trained on, 370 test. They ship with the package aeon, which
this example alone needs:

    pip install aeon
    python examples/japanese_vowels.py [--models ornn,lstm] [--seeds 5] [--epochs 60] [--hidden 64]

Each model of `isometry train`, torch's own RNN and LSTM among them, reads PackedSequences, so no step is spent on
padding, and the label is read from each sequence's own last state. All have the same number of units and of updates;
the table has the accuracy on the test data, as median, worst and best over the seeds, and the seconds of a training.
There is no validation: the network after the last update is tested. The command line trains one model the same way:

    cd examples; isometry train --task japanese_vowels:JapaneseVowels --model ornn --hidden 64 --lr 3e-3
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import isometry
from isometry.cli import registry
from isometry.cli.errors import Failure, UsageError
from isometry.cli.resolve import resolve
from isometry.cli.session import Session, prepared

UTTERANCES, BATCH = 270, 30
LR, RECURRENT_LR = 3e-3, 3e-3


class JapaneseVowels:
    """A task as docs/api/command-line.md defines it; coefficients are scaled by those of the training data."""

    inputs, outputs, last_only = 12, 9, True
    title = "Japanese Vowels"

    def __init__(self, *, batch: int = BATCH) -> None:
        self.batch = batch
        (x, self.labels), (tested, self.test_labels) = (spoken(part) for part in ("train", "test"))
        often = self.test_labels.bincount().max() / len(self.test_labels)
        self.baselines = {"accuracy of the most frequent speaker": float(often)}
        frames = torch.cat(x)
        mean, deviation = frames.mean(0), frames.std(0)
        self.x, self.test_x = ([(a - mean) / deviation for a in part] for part in (x, tested))

    def draw(self, rng: Any) -> tuple[PackedSequence, Tensor]:
        chosen = rng.choice(len(self.x), self.batch, replace=False)
        return pack_sequence([self.x[k] for k in chosen], enforce_sorted=False), self.labels[chosen]

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(values, target)

    def test(self, network: Callable[[PackedSequence], Tensor]) -> dict[str, float]:
        values = network(pack_sequence(self.test_x, enforce_sorted=False))
        return {"accuracy": (values.argmax(-1) == self.test_labels).float().mean().item()}


@cache
def spoken(part: str) -> tuple[list[Tensor], Tensor]:
    """Utterances (frames, 12), and the speakers 0..8."""
    try:
        from aeon.datasets import load_japanese_vowels
    except ImportError as error:
        raise ImportError(f"this example needs aeon: pip install aeon ({error})") from error
    x, y = load_japanese_vowels(split=part)
    return [torch.from_numpy(a.T.astype(np.float32)) for a in x], torch.from_numpy(y.astype(np.int64) - 1)


def trained(model: str, seed: int, options: argparse.Namespace) -> tuple[int, float, float]:
    """Parameters, seconds of the training and accuracy of one run."""
    settings = resolve(
        {
            "task": "japanese_vowels:JapaneseVowels",
            "model": model,
            "seed": seed,
            "hidden": options.hidden,
            "lr": LR,
            "recurrent_lr": RECURRENT_LR,
            "optimizer": "adam",
        }
    )
    session = Session(settings)
    start = time.perf_counter()
    for _ in range(options.epochs * UTTERANCES // BATCH):
        session.step()
    return session.parameters, time.perf_counter() - start, session.scores("test")["accuracy"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=registry.names("model"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--hidden", type=int, default=64)
    options = parser.parse_args()
    JapaneseVowels()  # read now: aeon's packages complain if denormals are flushed while they are imported
    print("| model | parameters | accuracy, median (worst to best) | seconds, median |")
    print("|---|---|---|---|", flush=True)
    with prepared(isometry.get_num_threads()):
        for model in options.models:
            runs = [trained(model, seed, options) for seed in range(options.seeds)]
            parameters, seconds, accuracies = zip(*runs, strict=True)
            middle = f"{statistics.median(accuracies):.1%} ({min(accuracies):.1%} to {max(accuracies):.1%})"
            print(f"| {model} | {parameters[0]:,} | {middle} | {statistics.median(seconds):.1f} |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except (Failure, UsageError, ImportError) as error:
        raise SystemExit(f"japanese_vowels: {error}") from error
