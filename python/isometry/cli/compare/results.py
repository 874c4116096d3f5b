"""The results of runs, read from their folders, by task, model and settings, with their final figures."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isometry.cli.plots import TAIL, trailing
from isometry.cli.run_folder import COLUMNS, RunFolder
from isometry.cli.settings import DIGEST, TABLES, Settings, stored

EVERY_RUN_ITS_OWN = ("seed", "threads", "backend", "device")
OF_THE_TASK = ("task", "length", "data", DIGEST)


@dataclass(frozen=True)
class Result:
    """One run."""

    folder: RunFolder
    settings: Settings
    columns: dict[str, list[float]]

    @property
    def done(self) -> int:
        """The updates made."""
        return int(self.columns["iteration"][-1])

    def final(self, name: str) -> float:
        """The median of a column over the last twentieth of the updates, of the values there are; NaN without any."""
        iterations, values = (np.asarray(self.columns[key], float) for key in ("iteration", name))
        tail = values[iterations > iterations[-1] * (1 - 1 / TAIL)]
        return float(np.median(tail[np.isfinite(tail)])) if np.isfinite(tail).any() else math.nan

    @property
    def scores(self) -> list[str]:
        """The names of the task's scores."""
        return list(self.columns)[COLUMNS:]

    @property
    def tests(self) -> dict[str, float]:
        """Scores on test data of the network that was best on validation data, if the task has them."""
        found: dict[str, float] = self.folder.read_scores().get("test", {})
        return found

    @property
    def half_way(self) -> float:
        """The first update up to which the median of a twentieth of the updates is below half the baseline; infinite if
        there is none."""
        baseline = self.columns["baseline"][0]
        below = np.flatnonzero(trailing(self.columns["iteration"], self.columns["loss"]) < baseline / 2)
        return self.columns["iteration"][below[0]] if below.size else math.inf

    @property
    def seconds_per_step(self) -> float:
        """The median over the rows."""
        seconds, iterations = self.columns["seconds"], self.columns["iteration"]
        if len(iterations) < 2:
            return seconds[0] / iterations[0]
        return float(np.median(np.diff(seconds) / np.diff(iterations)))

    @property
    def parameters(self) -> float:
        """The number of trained parameters; NaN where the checkpoint has been removed."""
        from isometry.cli.checkpoint import load_network, read
        from isometry.cli.compare.sizes import count

        path = self.folder.checkpoint
        return count(load_network(read(path), path, self.settings), self.settings) if path.is_file() else math.nan


@dataclass(frozen=True)
class Variant:
    """Runs that differ in their seeds alone, one for each seed; `again` are further runs of the same seeds."""

    name: str
    runs: list[Result]
    again: Sequence[Result] = ()

    @classmethod
    def of(cls, name: str, found: Sequence[Result]) -> Variant:
        """Of the runs of one seed the longest counts, and of equally long ones the first."""
        runs: dict[int, Result] = {}
        for run in found:
            kept = runs.setdefault(run.settings["seed"], run)
            if run.done > kept.done:
                runs[run.settings["seed"]] = run
        return cls(name, list(runs.values()), [run for run in found if run not in runs.values()])

    @property
    def hidden(self) -> int:
        size: int = self.runs[0].settings["hidden"]
        return size

    def median(self, values: Iterable[float]) -> float:
        """The median of finite and infinite numbers; NaN without any."""
        kept = [value for value in values if not math.isnan(value)]
        return statistics.median(kept) if kept else math.nan


@dataclass(frozen=True)
class Comparison:
    """The variants of one task."""

    title: str
    variants: list[Variant]

    @property
    def scores(self) -> list[str]:
        """Every score that some run has."""
        return list(dict.fromkeys(name for v in self.variants for run in v.runs for name in run.scores))

    @property
    def tests(self) -> list[str]:
        """Every score on test data."""
        return list(dict.fromkeys(name for v in self.variants for run in v.runs for name in run.tests))


def load(path: Path) -> Result | None:
    """The run of a folder; None before its first row, which standard error then says."""
    folder = RunFolder(path)
    if not folder.config.is_file():
        return None
    columns = folder.columns()
    if not columns.get("iteration"):
        lack = "metrics.csv has no row" if folder.metrics.exists() else "there is no metrics.csv"
        print(f"{path} is left out: {lack}", file=sys.stderr)
        return None
    return Result(folder, stored(folder.config), columns)


def compared(results: Sequence[Result]) -> list[Comparison]:
    """One comparison for each task, its variants in the order of the runs."""
    places: dict[Any, str] = {}
    titles = _named([_of_task(r.settings, places) for r in results], "task")
    found = []
    for title in dict.fromkeys(titles):
        own = [r for r, t in zip(results, titles, strict=True) if t == title]
        names = _named([_of_model(r.settings) for r in own], "model")
        groups = {name: [r for r, n in zip(own, names, strict=True) if n == name] for name in dict.fromkeys(names)}
        found.append(Comparison(title, [Variant.of(name, runs) for name, runs in groups.items()]))
    return found


def _of_task(settings: Settings, places: dict[Any, str]) -> dict[str, Any]:
    """What tells tasks apart. The same data count as one wherever they lie: `places` holds where they were seen first,
    with the digest's first digits where others were seen there."""
    data, known = (settings.get(name) for name in ("data", DIGEST))
    if data is not None:
        seen = data in places.values() and (known or data) not in places
        data = places.setdefault(known or data, f"{data} ({known[:8]})" if seen and known else data)
    table = {name: settings.get(name) for name in OF_THE_TASK if name != DIGEST}
    return table | {"data": data} | settings.get("task_options", {})


def _of_model(settings: Settings) -> dict[str, Any]:
    left_out = {*EVERY_RUN_ITS_OWN, *OF_THE_TASK, *TABLES}
    return {name: v for name, v in settings.items() if name not in left_out} | settings.get("layer", {})


def _named(tables: Sequence[dict[str, Any]], kind: str) -> list[str]:
    """A name for each table: the name of its kind, and the settings in which tables of that name differ."""
    names = []
    for table in tables:
        same = [other for other in tables if other[kind] == table[kind]]
        keys = dict.fromkeys(key for other in same for key in other)
        differ = [key for key in keys if key != kind and any(other.get(key) != table.get(key) for other in same)]
        if kind == "task" and "length" not in differ and table.get("length") is not None:
            differ.insert(0, "length")
        names.append(", ".join([_short(table[kind]), *(f"{key} {_written(table.get(key))}" for key in differ)]))
    return names


def _short(name: str) -> str:
    return name.rpartition(":")[2]


def _written(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
