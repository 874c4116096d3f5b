"""Speakers told apart by a vowel: real sequences of different lengths, a task of one's own, every layer.

The Japanese Vowels data (Kudo, Toyama, Shimbo 1999; the UEA archive) are 640 utterances of the vowels /ae/ by nine men,
7 to 29 frames of 12 cepstral coefficients each; 270 are trained on, 370 test. They ship with aeon (`pip install aeon`).
Models read PackedSequences: no step is spent on padding, the label is read from each sequence's own last state. There
is no validation: the network after the last update is tested.

    python examples/japanese_vowels.py [--models ornn,lstm] [--seeds 5] [--out FILE.png] [--quick]

The command line trains one model the same way:

    cd examples; isometry train --task japanese_vowels:JapaneseVowels --model ornn --hidden 64 --lr 3e-3
"""

import argparse
import statistics
import time

import torch
from aeon.datasets import load_japanese_vowels
from matplotlib.figure import Figure
from torch.nn.utils.rnn import pack_sequence

from isometry.cli import registry
from isometry.cli.resolve import resolve
from isometry.cli.session import Session, prepared

UTTERANCES, BATCH, LR = 270, 30, 3e-3
BASELINES = ("rnn", "lstm", "gru")  # whose matrices are free


class JapaneseVowels:
    """A task as docs/api/command-line.md defines it; coefficients are scaled by those of the training data."""

    inputs, outputs, last_only, title = 12, 9, True, "Japanese Vowels"

    def __init__(self, *, batch: int = BATCH) -> None:
        self.batch = batch
        data = [load_japanese_vowels(split=part) for part in ("train", "test")]
        x, tested = ([torch.from_numpy(a.T.astype("float32")) for a in utterances] for utterances, _ in data)
        self.labels, self.test_labels = (torch.from_numpy(speakers.astype("int64") - 1) for _, speakers in data)
        mean, deviation = torch.cat(x).mean(0), torch.cat(x).std(0)
        self.x, self.test_x = ([(a - mean) / deviation for a in part] for part in (x, tested))

    def draw(self, rng):
        chosen = rng.choice(len(self.x), self.batch, replace=False)
        return pack_sequence([self.x[k] for k in chosen], enforce_sorted=False), self.labels[chosen]

    def loss(self, values, target):
        return torch.nn.functional.cross_entropy(values, target)

    def test(self, network):
        right = network(pack_sequence(self.test_x, enforce_sorted=False)).argmax(-1) == self.test_labels
        return {"accuracy": right.float().mean().item()}


def trained(model: str, seed: int, hidden: int, epochs: int) -> tuple[int, float, float]:
    """Parameters, seconds and accuracy of one run."""
    given = {"task": "japanese_vowels:JapaneseVowels", "model": model, "seed": seed, "hidden": hidden}
    session = Session(resolve(given | {"lr": LR, "recurrent_lr": LR, "optimizer": "adam"}))
    start = time.perf_counter()
    for _ in range(epochs * UTTERANCES // BATCH):
        session.step()
    return session.parameters, time.perf_counter() - start, session.scores("test")["accuracy"]


def picture(out: str, found: dict[str, tuple[float, ...]]) -> None:
    figure = Figure(figsize=(7.5, 1.2 + 0.28 * len(found)), layout="constrained")
    axes = figure.subplots()
    for row, (model, accuracies) in enumerate(sorted(found.items(), key=lambda item: statistics.median(item[1]))):
        wrong = [100 - 100 * a for a in accuracies]
        layer = registry.papers()["model"][model]["class"].partition(":")[2]
        axes.plot(wrong, [layer] * len(wrong), "o", color="C1" if model in BASELINES else "C0", alpha=0.5)
        axes.plot(statistics.median(wrong), row, "k|", markersize=14)
    label = "wrong in % of 370 test utterances: a dot per seed, a line at the median;\n"
    axes.set(xscale="log", xlabel=f"{label}orange: baselines whose matrices are free")
    axes.set_xticks([1, 2, 3, 5, 10, 15], ["1", "2", "3", "5", "10", "15"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=registry.names("model"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", help="file of the picture; without it, the table alone")
    parser.add_argument("--quick", action="store_true", help="16 units and 15 epochs instead of 64 and 60")
    options = parser.parse_args()
    print("| model | parameters | accuracy, median (worst to best) | seconds, median |\n|---|---|---|---|", flush=True)
    found = {}
    with prepared(1):  # torch's gradient of the readout rounds differently with each number of threads
        for model in options.models:
            runs = [trained(model, seed, *((16, 15) if options.quick else (64, 60))) for seed in range(options.seeds)]
            parameters, seconds, a = zip(*runs, strict=True)
            found[model], typical = a, f"{statistics.median(a):.1%} ({min(a):.1%} to {max(a):.1%})"
            print(f"| {model} | {parameters[0]:,} | {typical} | {statistics.median(seconds):.1f} |", flush=True)
    if options.out:
        picture(options.out, found)
