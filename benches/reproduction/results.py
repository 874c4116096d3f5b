"""The results of the reproduction: results/CELL.json, from which the pages are made.

    {"cell": ..., "baseline": ..., "entries": [{"tier", "model", "hidden", "parameters", "updates", "command", "runs"}]}

A run is {"seed", "loss", "baseline", "scores", "tests", "half", "ms", "error", "seconds", "date", "machine", "curve"}:
loss and scores are medians over the last twentieth of the updates, tests the scores of the best network on test data,
half the first update up to which such a median is below half the baseline, ms the milliseconds of an update, error the
last e(W), curve [updates, losses]. The pages take the loss from the curve, as the pictures do: until 2026-11-24 "loss"
and scores were means, and curves were smoothed over a fiftieth of the updates. Where the seeds were not kept, `summary`
stands in the place of `runs`, with the number of seeds, of those that learnt the task, the best and the median of the
mean losses, and the medians of all else.
"""

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from isometry.cli.compare.results import Result
from isometry.cli.info import processor
from isometry.cli.plots import trailing
from reproduction.cell import CELLS, Job, stem

FOLDER = Path(__file__).with_name("results")
DIGITS = 4  # of a stored number


@dataclass(frozen=True)
class Entry:
    """A system on a task in a tier: the figures over its seeds."""

    tier: str
    model: str
    hidden: int
    parameters: int
    updates: int
    command: str
    seeds: int
    learnt: int
    best: float
    median: float
    ratio: float  # the median over the baseline
    scores: dict[str, float]
    tests: dict[str, float]
    half: float
    ms: float
    error: float
    dates: tuple[str, ...]
    seconds: float  # of all runs together; 0 where they were not kept
    curves: tuple[dict[str, list[float]], ...]


def path(cell: str, folder: Path = FOLDER) -> Path:
    return folder / f"{stem(cell)}.json"


def read(cell: str, folder: Path = FOLDER) -> dict[str, Any]:
    """The file of a cell; one without entries where there is none."""
    file = path(cell, folder)
    empty: dict[str, Any] = {"cell": cell, "baseline": None, "entries": []}
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else empty


def write(table: dict[str, Any], folder: Path = FOLDER) -> None:
    """A line for every run and every summary."""
    entries = []
    for entry in table["entries"]:
        head = json.dumps({name: value for name, value in entry.items() if name != "runs"}, ensure_ascii=False)
        runs = ",\n   ".join(json.dumps(run, ensure_ascii=False) for run in entry.get("runs", ()))
        entries.append(f'{head[:-1]}, "runs": [\n   {runs}]}}' if runs else head)
    lines = ",\n  ".join(entries)
    head = json.dumps({name: table[name] for name in ("cell", "baseline")})
    folder.mkdir(parents=True, exist_ok=True)
    path(table["cell"], folder).write_text(f'{head[:-1]}, "entries": [\n  {lines}\n]}}\n', encoding="utf-8")


def seeds(job: Job, folder: Path = FOLDER) -> set[int]:
    """Those for which a job has a result."""
    entry = _entry(read(job.cell, folder), job)
    if entry is None:
        return set()
    return {run["seed"] for run in entry["runs"]} if "runs" in entry else set(range(entry["summary"]["seeds"]))


def add(job: Job, found: Sequence[Result], folder: Path = FOLDER) -> None:
    """Keep the results of runs that have ended, in the place of older ones of their seeds."""
    table = read(job.cell, folder)
    entry = _entry(table, job)
    if entry is None or "summary" in entry:
        others = [other for other in table["entries"] if (other["tier"], other["model"]) != (job.tier, job.model)]
        entry = {"tier": job.tier, "model": job.model, "hidden": found[0].settings["hidden"]}
        entry |= {"parameters": int(found[0].parameters), "updates": job.updates}
        entry |= {"command": job.command(entry["hidden"]), "runs": []}
        table["entries"] = [*others, entry]
    runs = {run["seed"]: run for run in entry["runs"]} | {r.settings["seed"]: recorded(r) for r in found}
    entry["runs"] = [runs[seed] for seed in sorted(runs)]
    table["baseline"] = rounded(found[0].columns["baseline"][0])
    write(table, folder)


def recorded(result: Result) -> dict[str, Any]:
    """What is kept of a run."""
    columns = result.columns
    tests = {name: rounded(value) for name, value in result.tests.items()}
    return {
        "seed": result.settings["seed"],
        "loss": rounded(result.final("loss")),
        "baseline": rounded(columns["baseline"][0]),
        "scores": {name: rounded(result.final(name)) for name in result.scores},
        "tests": tests,
        "half": rounded(result.half_way),
        "ms": rounded(1e3 * result.seconds_per_step),
        "error": rounded(columns["orthogonality_error"][-1]),
        "seconds": rounded(columns["seconds"][-1]),
        "date": date.fromtimestamp(result.folder.metrics.stat().st_mtime).isoformat(),
        "machine": processor(),
        "curve": curve(columns),
    }


def curve(columns: dict[str, list[float]]) -> list[list[float | None]]:
    """Updates and losses; the rows of a run are few."""
    return [[int(k) for k in columns["iteration"]], [rounded(loss) for loss in columns["loss"]]]


def rounded(value: float) -> float | None:
    """A number of few digits; None for one that is not finite, which JSON does not have."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def entries(cell: str, folder: Path = FOLDER) -> list[Entry]:
    """Those of a cell that have a result, in the order of the file."""
    return [_summed(CELLS[cell]["learnt"], entry) for entry in read(cell, folder)["entries"]]


def _entry(table: dict[str, Any], job: Job) -> dict[str, Any] | None:
    """That of a job; other updates or another given size are another job."""
    for entry in table["entries"]:
        same = (entry["tier"], entry["model"], entry["updates"]) == (job.tier, job.model, job.updates)
        if same and (job.size[0] != "hidden" or entry["hidden"] == job.size[1]):
            found: dict[str, Any] = entry
            return found
    return None


def _summed(share: float, entry: dict[str, Any]) -> Entry:
    names = ("tier", "model", "hidden", "parameters", "updates", "command")
    head = {name: entry[name] for name in names}
    if "summary" in entry:
        kept = entry["summary"]
        figures = {name: _number(kept[name]) for name in ("best", "median", "ratio", "half", "ms", "error")}
        names = ("seeds", "learnt", "scores", "tests")
        rest = {name: kept[name] for name in names} | {"seconds": 0.0, "curves": ()}
        return Entry(**head, **figures, **rest, dates=(kept["date"],))
    runs = entry["runs"]
    losses = [_loss(run) for run in runs]
    ratios = [loss / run["baseline"] for loss, run in zip(losses, runs, strict=True)]
    return Entry(
        **head,
        seeds=len(runs),
        learnt=sum(ratio < share for ratio in ratios),
        best=min((loss for loss in losses if not math.isnan(loss)), default=math.nan),
        median=_median(losses),
        ratio=_median(ratios),
        scores=_medians([run["scores"] for run in runs]),
        tests=_medians([run["tests"] for run in runs]),
        half=_median([math.inf if run["half"] is None else run["half"] for run in runs]),
        ms=_median([run["ms"] for run in runs]),
        error=max((run["error"] for run in runs if run["error"] is not None), default=math.nan),
        dates=tuple(dict.fromkeys(run["date"] for run in runs)),
        seconds=sum(run["seconds"] for run in runs),
        curves=tuple(
            {"iteration": run["curve"][0], "loss": [_number(y) for y in run["curve"][1]], "baseline": [run["baseline"]]}
            for run in runs
        ),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _loss(run: dict[str, Any]) -> float:
    """Where the curve of the pictures ends; NaN if the last loss is not finite."""
    updates, losses = run["curve"]
    kept = [(at, loss) for at, loss in zip(updates, losses, strict=True) if loss is not None]
    return float(trailing(*zip(*kept, strict=True))[-1]) if losses[-1] is not None else math.nan


def _median(values: Iterable[float | None]) -> float:
    """Of finite and infinite numbers; NaN without any."""
    kept = [value for value in values if value is not None and not math.isnan(value)]
    return statistics.median(kept) if kept else math.nan


def _medians(tables: Sequence[dict[str, float | None]]) -> dict[str, float]:
    return {name: _median(table.get(name) for table in tables) for name in dict.fromkeys(n for t in tables for n in t)}
