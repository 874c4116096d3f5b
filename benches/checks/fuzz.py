"""Random calls by number, `tests/fuzz/series.py`; a run goes on where the last one has stopped."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from checks.check import Check, Figures, Outcome, python, run

PART, SECONDS = 5_000, 1800  # calls of one process, and its time limit


def examine(options: argparse.Namespace, before: Figures) -> Iterator[Outcome]:
    """Calls up to the number `--calls`, for at most `--minutes`; calls that were wrong before are examined again."""
    ends = time.monotonic() + (60 * options.minutes if options.minutes else float("inf"))
    calls, reached = Counter[str](before.get("calls", {})), before.get("reached", 0)
    wrong: list[int] = []
    failures: list[str] = []

    def outcome() -> Outcome:
        figures = {"calls": dict(sorted(calls.items())), "reached": reached, "wrong": sorted(set(wrong))}
        return Outcome(figures, failures)

    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder, "at")
        for number in before.get("wrong", []):
            _part(number, number + 1, SECONDS, at, wrong, failures)
        if reached:
            yield outcome()
        while reached < options.calls and (left := ends - time.monotonic()) > 0:
            found = _part(reached, min(options.calls, reached + PART), min(left, SECONDS), at, wrong, failures)
            reached = found["reached"]
            calls.update(found["calls"])
            yield outcome()


def _part(first: int, stop: int, seconds: float, at: Path, wrong: list[int], failures: list[str]) -> Figures:
    """Examine some calls in one process; after a crash or a hang the next one begins behind that call."""
    at.write_text(str(first))
    command = python("-m", "fuzz.series", first, stop, "--seconds", seconds, "--at", at)
    ended = run(command, seconds + 300)
    found = [line for line in ended.lines if "failure" in line]
    wrong += [line["number"] for line in found]
    failures += [line["failure"] for line in found]
    if ended.failure:
        number = int(at.read_text())
        wrong.append(number)
        failures.append(f"call {number}: {ended.failure}")
        return {"reached": number + 1, "calls": {"in processes that crashed": number + 1 - first}}
    total: Figures = ended.lines[-1]
    return total


def row(found: Figures) -> str:
    faces = ", ".join(f"{count:,} {name}" for name, count in found["calls"].items())
    return f"{sum(found['calls'].values()):,} calls ({faces}), numbers 0 to {found['reached'] - 1:,}"


CHECK = Check(
    "Fuzz",
    "Random calls of both faces, drawn by `tests/fuzz`: operators, recurrences, gated cells, the delta rule, "
    "activations, constructors, measures, tasks and LAPACK's reflections, with sizes, dtypes, memory layouts and "
    "numbers of threads drawn too. Half of them have one mistake. A valid call must give the result of the NumPy "
    "reference, another one the documented exception with a message that names the argument; no argument may change. "
    "Call k is drawn from the seed k, so a run continues the one before.",
    "A failure is a wrong number, another exception, a panic, a crash or a hang; it is listed with the number of its "
    "call, and `PYTHONPATH=tests python -m fuzz.series K K+1` repeats it.",
    examine,
    row,
)
