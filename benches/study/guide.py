"""python benches/study report: what the results say, as tables in Markdown, and how good a guide made of them is.

The score of a layer on a task is the mean over its seeds; a share of 0 is chance, a share of 1 the best of all layers.
For a kind of task the guide ranks layers, each with one activation, by their mean share over its tasks, in which the
tasks of all other kinds count together as one more. To test it, each task in turn is left out: its kind's first pick,
made from the other tasks, is compared with the best of all layers on it and with torch's GRU and LSTM.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

from .run import RESULTS, UPDATES, Results, read
from .tasks import TASKS

PICKS = 3
NEAR, NEARER = 0.05, 0.10  # of a score, and of the way from chance to the best
TORCH = ("torch GRU", "torch LSTM")

#: By task and by layer with activation, a number.
Table = dict[str, dict[str, float]]


def means(results: Results, updates: int) -> tuple[Table, Table]:
    """Scores and milliseconds of an update. Of several rates, as in the screening, the best counts."""
    scores: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for name, found in results.items():
        task, layer, rate, _, count = name.split(" | ")
        if int(count) == updates and task in TASKS:
            scores[task, layer][rate].append(found["score"])
            times[task, layer].append(found["ms"])
    tables: tuple[Table, Table] = (defaultdict(dict), defaultdict(dict))
    for (task, layer), of_rates in scores.items():
        tables[0][task][layer] = max(map(statistics.fmean, of_rates.values()))
        tables[1][task][layer] = statistics.median(times[task, layer])
    return tables


@cache
def chance(task: str) -> float:
    return TASKS[task].make().chance


def shares(scores: Table) -> Table:
    """Of the way from chance to the best."""
    found: Table = {}
    for task, of_layers in scores.items():
        low, high = chance(task), max(of_layers.values())
        if high > low:
            found[task] = {layer: max(0.0, (score - low) / (high - low)) for layer, score in of_layers.items()}
    return found


def ranked(share: Table, kind: str, without: Collection[str] = ()) -> list[tuple[str, float]]:
    """The layers with their mean share for a kind, the best first; only those that every task of it has."""
    own = [task for task in share if TASKS[task].kind == kind and task not in without]
    others = [task for task in share if TASKS[task].kind != kind]
    known = [set(share[task]) for task in own] or [set().union(*(share[task] for task in others))]
    found = []
    for layer in set.intersection(*known):
        elsewhere = [share[task][layer] for task in others if layer in share[task]]
        parts = [share[task][layer] for task in own] + ([statistics.fmean(elsewhere)] if elsewhere else [])
        found.append((layer, statistics.fmean(parts)))
    return sorted(found, key=lambda pair: -pair[1])


def left_out(scores: Table, share: Table) -> Iterator[tuple[str, str, float, str, float, bool, bool]]:
    """For every task the first pick made without it and its score, the best, whether it is near, and below torch's."""
    for task, of_layers in scores.items():
        if task not in share:
            continue
        pick = next(name for name, _ in ranked(share, TASKS[task].kind, (task,)) if name in of_layers)
        best = max(of_layers, key=lambda name: of_layers[name])
        near = of_layers[pick] >= of_layers[best] - NEAR or share[task][pick] >= 1 - NEARER
        below = of_layers[pick] < max(of_layers.get(name, 0.0) for name in TORCH)
        yield task, pick, of_layers[pick], best, of_layers[best], near, below


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def report(scores: Table, times: Table, write: Callable[[str], None]) -> None:
    share = shares(scores)
    write("## For a kind of task\n")
    for kind in dict.fromkeys(TASKS[task].kind for task in share):
        own = [task for task in share if TASKS[task].kind == kind]
        rows = []
        for name, mean in ranked(share, kind)[:PICKS]:
            ms = statistics.fmean(times[task][name] for task in own)
            rows.append([name, f"{mean:.2f}", *(f"{scores[task][name]:.3f}" for task in own), f"{ms:.1f}"])
        for name in TORCH:
            if all(name in scores[task] for task in own):
                rows.append([name, "", *(f"{scores[task][name]:.3f}" for task in own), ""])
        write(f"### {kind[0].upper() + kind[1:]}\n\n" + table(["", "share", *own, "ms"], rows))
    found = list(left_out(scores, share))
    rows = [
        [task, pick, f"{score:.3f}", best, f"{most:.3f}", "yes" if near else "no", "yes" if below else "no"]
        for task, pick, score, best, most, near, below in found
    ]
    write("## Each task left out\n")
    write(table(["task", "first pick", "its score", "best", "its score", "near", "below torch's"], rows))
    near, below = sum(row[5] for row in found), sum(row[6] for row in found)
    write(f"Near the best on {near} of {len(found)} tasks, below torch's GRU or LSTM on {below}.")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="study report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE")
    parser.add_argument("--updates", type=int, default=UPDATES, metavar="N", help="300: the screening")
    options = parser.parse_args(arguments)
    report(*means(read(options.results), options.updates), print)
    return 0
