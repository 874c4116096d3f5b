"""The results, lines of `results.jsonl`, a run each; their means, and shares of the way from chance to the best."""

import json
import statistics
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any

from .layers import Choice

RESULTS = Path(__file__).with_name("results.jsonl")
UPDATES, QUARTER = 1200, 300  # of the final runs and of the screening

#: By the name of a run its score, the chance of the task, milliseconds of an update, parameters.
Results = dict[str, dict[str, Any]]
#: By task and by layer with activation, a number.
Table = dict[str, dict[str, float]]


def key(task: str, choice: Choice, rate: float, seed: int, updates: int) -> str:
    """The name of a run in the results."""
    return f"{task} | {choice.name} | {rate:g} | {seed} | {updates}"


def read(file: Path = RESULTS) -> Results:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {found.pop("run"): found for found in map(json.loads, lines)}


def among(results: Results, tasks: Collection[str]) -> Results:
    """Those of these tasks."""
    return {name: found for name, found in results.items() if name.split(" | ")[0] in tasks}


def means(results: Results, updates: int) -> Table:
    """Scores. Of several rates, as in the screening, the best counts."""
    scores: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for name, found in results.items():
        task, layer, rate, _, count = name.split(" | ")
        if int(count) == updates:
            scores[task][layer][rate].append(found["score"])
    return {
        task: {layer: max(map(statistics.fmean, rates.values())) for layer, rates in of_layers.items()}
        for task, of_layers in scores.items()
    }


def shares(scores: Table, results: Results, best: Table | None = None) -> Table:
    """Of the way from chance to the best of all layers; a task on which none is better than chance is left out."""
    chances = {name.split(" | ")[0]: found["chance"] for name, found in results.items()}
    found: Table = {}
    for task, of_layers in scores.items():
        low, high = chances[task], max((best or scores)[task].values())
        if high > low:
            found[task] = {layer: max(0.0, (score - low) / (high - low)) for layer, score in of_layers.items()}
    return found


def of_seeds(scores: Table, results: Results, updates: int) -> list[Table]:
    """The shares of each seed alone, of the way to the best mean."""
    runs: dict[str, Results] = defaultdict(dict)
    for name, found in results.items():
        if name.endswith(f" | {updates}"):
            runs[name.split(" | ")[3]][name] = found
    return [shares(means(own, updates), own, scores) for own in runs.values()]
