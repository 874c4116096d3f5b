"""Runs the groups and prints a table line by line; writes JSON."""

from __future__ import annotations

import importlib.metadata
import json
import math
import platform
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import isometry
from isometry import _core
from isometry.cli.bench.measure import HEADER, Settings, judged, measure
from isometry.cli.bench.row import Figure
from isometry.cli.errors import UsageError
from isometry.cli.info import processor

MEAN = (4.5, 6.5)  # bar and goal of the geometric mean of the recurrences' ratios to the best orthogonal variant


def run(groups: Sequence[str], settings: Settings, json_file: str | None) -> int:
    """Run the groups; exit status 1 if a value of ours is wrong."""
    libraries = {"numpy": version("numpy"), "scipy": version("scipy")}
    if any(group != "numpy" for group in groups):
        libraries = {"torch": version("torch"), **libraries}
    machine = {
        "processor": processor(),
        "threads": settings.threads,
        "python": platform.python_version(),
        **libraries,
        "isometry": isometry.__version__,
        "kernels": {k: str(v) for k, v in _core.config().items()},
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "quick": settings.quick,
    }
    beside = ", ".join(f"{name} {found}" for name, found in libraries.items() if found)
    print(f"isometry {machine['isometry']}, {beside}, {machine['processor']}")
    print(f"{machine['threads']} threads, float32, kernels {_core.config().get('simd')}")
    entries: list[dict[str, Any]] = []
    for group in groups:
        print(f"\n{group}\n{HEADER}" if group != "memory" else f"\n{group}", flush=True)
        entries += [{"group": group, **entry} for entry in measured(group, settings)]
    if settings.only and not entries:
        raise UsageError(f"bench: argument --only: no row of {', '.join(groups)} has {settings.only!r} in its name")
    wrong = [entry["row"] for entry in entries if entry["wrong"]]
    missed = [f"{e['row']} ({b['against']})" for e in entries for b in e["bars"] if b["mark"] == "MISS"]
    print(f"\nbars missed: {len(missed)}" + "".join(f"\n  {name}" for name in missed))
    if wrong:
        print(f"wrong values: {len(wrong)}" + "".join(f"\n  {name}" for name in wrong))
    if json_file is not None:
        with open(json_file, "w", encoding="utf-8") as file:
            json.dump({"machine": machine, "rows": entries}, file)
    return 1 if wrong else 0


def measured(group: str, settings: Settings) -> list[dict[str, Any]]:
    """The entries of a group's rows, printed as they are measured."""
    if group == "numpy":
        from isometry.cli.bench.numpy import process

        return process.entries(settings)
    from isometry.cli.bench import autograd

    frame, module = autograd.frame(), import_module(f"isometry.cli.bench.{group}")
    found = []
    options = {"memory": {"alone": settings.alone}, "gpu": {"quick": settings.quick}}.get(group, {})
    for row in module.rows(**options):
        if settings.only in row.name:
            found.append(figure(row) if isinstance(row, Figure) else measure(row, frame, settings))
    if group == "recurrence" and not (settings.only or settings.alone):
        found.append(mean(found))
    return found


def mean(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The geometric mean of the ratios to the best orthogonal variant."""
    ratios = [bar["ratio"] for entry in entries for bar in entry["bars"] if bar["against"] == "best orthogonal"]
    value = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0.0
    bar = judged("best orthogonal", value, *MEAN)
    print(f"{f'geometric mean of {len(ratios)}':36} {'':19} {value:5.2f}x {MEAN[0]:5g} {MEAN[1]:5g} {bar['mark']}")
    return {"row": "geometric mean", "plan": "", "wrong": False, "bars": [bar | {"peer": ""}]}


def figure(row: Figure) -> dict[str, Any]:
    if row.value is None:
        print(f"{row.name}: not available", flush=True)
        return {"row": row.name, "plan": "", "wrong": False, "bars": [], **row.facts}
    bars = []
    mark = ""
    if row.bound is not None:
        mark = "pass" if row.value <= row.bound else "MISS"
        bars = [{"against": "bound", "ratio": row.value, "bar": row.bound, "goal": row.bound, "mark": mark, "peer": ""}]
    print(f"{row.name}: {row.value:.2f} {row.unit}, at most {row.bound} {mark}", flush=True)
    return {"row": row.name, "plan": "", "wrong": False, "bars": bars, **row.facts}


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
