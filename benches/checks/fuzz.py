"""Random calls by number, `tests/fuzz/series.py`; a run goes on where the last one has stopped."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from checks.check import Figures, Outcome, run

Found = dict[int, str]  # numbers of calls, and what was wrong
PART, SECONDS = 5_000, 1800  # calls of one process, and its time limit


def examine(options: argparse.Namespace, before: Figures) -> Iterator[Outcome]:
    """Calls up to the number `--calls`, for about `--minutes`, a process per core; calls that were wrong before are
    examined again.
    """
    ends = time.monotonic() + (60 * options.minutes if options.minutes else float("inf"))
    calls, reached, cores = (
        Counter[str](before.get("calls", {})),
        before.get("reached", 0),
        len(os.sched_getaffinity(0)),
    )
    found: Found = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(cores) as pool:

        def part(first: int, stop: int) -> tuple[Counter[str], Found]:
            return _part(first, stop, Path(folder, str(first)))

        def outcome() -> Outcome:
            figures = {"calls": dict(sorted(calls.items())), "reached": reached, "wrong": sorted(found)}
            return Outcome(figures, [found[number] for number in sorted(found)])

        for number in before.get("wrong", []):
            found |= part(number, number + 1)[1]
        if reached:
            yield outcome()
        while reached < options.calls and time.monotonic() < ends:
            firsts = range(reached, min(options.calls, reached + cores * PART), PART)
            stops = [min(options.calls, first + PART) for first in firsts]
            for counts, wrong in pool.map(part, firsts, stops):
                calls.update(counts)
                found |= wrong
            reached = stops[-1]
            yield outcome()


def _part(first: int, stop: int, at: Path) -> tuple[Counter[str], Found]:
    """Examine some calls: how many of each face, and what was wrong with which. After a crash or a hang another process
    goes on behind that call.
    """
    calls, found = Counter[str](), Found()
    while first < stop:
        at.write_text(str(first))
        ended = run([sys.executable, "-m", "fuzz.series", first, stop, "--at", at], SECONDS)
        found |= {line["number"]: line["failure"] for line in ended.lines if "failure" in line}
        if not ended.failure:
            calls.update(ended.lines[-1]["calls"])
            break
        number = int(at.read_text())
        found[number] = f"call {number}: {ended.failure}"
        calls["in processes that crashed"] += number + 1 - first
        first = number + 1
    return calls, found


def row(found: Figures) -> str:
    faces = ", ".join(f"{count:,} {name}" for name, count in found["calls"].items())
    return f"{sum(found['calls'].values()):,} calls ({faces}), numbers 0 to {found['reached'] - 1:,}"
