"""python benches/study time: milliseconds of an update beside torch's GRU, on one thread; run it on an idle machine.

A layer and the GRU take updates in turn, and the medians are compared, on tasks of 8, 64 and 427 steps.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path

import torch

from isometry import torch as it

from .layers import Choice
from .results import read
from .run import best
from .train import Training

TIMES = Path(__file__).with_name("times.json")
GRU = Choice("torch GRU", "")
TASKS = ("digits", "counting", "osuleaf")
UPDATES = 20


def beside(task: str, choice: Choice) -> float:
    """The time of an update in units of the GRU's."""
    both = [Training(task, each, 1e-3, 0, UPDATES) for each in (choice, GRU)]
    times: list[list[float]] = [[], []]
    for _ in range(UPDATES):
        for training, taken in zip(both, times, strict=True):
            taken.append(training.update())
    return statistics.median(times[0]) / statistics.median(times[1])


def main(arguments: Sequence[str]) -> int:
    argparse.ArgumentParser(prog="study time", description=__doc__).parse_args(arguments)
    torch.set_num_threads(1)
    it.set_num_threads(1)
    chosen = best(read())
    found = {choice.name: round(statistics.median(beside(task, choice) for task in TASKS), 3) for choice in chosen}
    TIMES.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    return 0
