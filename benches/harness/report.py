"""Runs the groups and prints a table line by line; writes JSON."""

import inspect
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import isometry
from harness.groups import APART, GROUPS
from harness.row import HEADER, Bar, Row, Settings
from isometry import _core
from isometry.cli.errors import UsageError
from isometry.cli.info import processor, version

# of the geometric mean of the recurrences' ratios to the best orthogonal variant
MEAN = Bar("best orthogonal", 4.5, 6.5)


def run(groups: Sequence[str], settings: Settings, json_file: str | None) -> int:
    """Run the groups; exit status 1 if a value of ours is wrong."""
    libraries = {name: version(name) for name in ("torch", "numpy", "scipy") if name != "torch" or name in sys.modules}
    machine = facts(settings.threads, libraries)
    machine |= {"kernels": {k: str(v) for k, v in _core.config().items()}, "quick": settings.quick}
    beside = ", ".join(f"{name} {found}" for name, found in libraries.items() if found)
    print(f"isometry {machine['isometry']}, {beside}, {machine['processor']}")
    print(f"{machine['threads']} threads, float32, kernels {_core.config().get('simd')}")
    entries: list[dict[str, Any]] = []
    header = HEADER
    if settings.cores:
        from harness.cores import HEADER as header
    for group in groups:
        print(f"\n{group}\n{header}", flush=True)
        entries += [{"group": group, **entry} for entry in measured(group, settings)]
    if settings.only and not entries:
        raise UsageError(f"argument --only: no row of {', '.join(groups)} has {settings.only!r} in its name")
    wrong = [entry["row"] for entry in entries if entry["wrong"]]
    missed = [f"{e['row']} ({b['against']})" for e in entries for b in e["bars"] if b["mark"] == "MISS"]
    print(f"\nbars missed: {len(missed)}" + "".join(f"\n  {name}" for name in missed))
    if wrong:
        print(f"wrong values: {len(wrong)}" + "".join(f"\n  {name}" for name in wrong))
    if json_file is not None:
        with open(json_file, "w", encoding="utf-8") as file:
            json.dump({"machine": machine, "rows": entries}, file)
    return 1 if wrong else 0


def facts(threads: int, libraries: Mapping[str, str | None]) -> dict[str, Any]:
    """The machine, the versions and the time of a measurement."""
    return {
        "processor": processor(),
        "threads": threads,
        "python": platform.python_version(),
        **libraries,
        "isometry": isometry.__version__,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def rows_of(group: str, settings: Settings) -> Iterator[Any]:
    """The rows of a group; each of its functions takes the settings named in its signature."""
    for target in GROUPS[group]:
        function = loaded(target)
        named = inspect.signature(function).parameters
        yield from function(**{key: value for key, value in settings._asdict().items() if key in named})


def loaded(target: str) -> Callable[..., Any]:
    """A function from module:name."""
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def measured(group: str, settings: Settings) -> list[dict[str, Any]]:
    """The entries of the rows asked for, printed as they are measured."""
    if group in APART:
        entries: list[dict[str, Any]] = loaded(APART[group])(settings)
        return entries
    from rows.torch.sides import frame

    if settings.cores:
        from harness import cores

        ours = (row for row in rows_of(group, settings) if isinstance(row, Row) and settings.only in row.name)
        return [cores.measured(row, settings) for row in ours]
    product = frame()
    found = [row.measured(product, settings) for row in rows_of(group, settings) if settings.only in row.name]
    if group == "recurrence" and not (settings.only or settings.alone):
        found.append(mean(found))
    return found


def mean(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The geometric mean of the ratios to the best orthogonal variant."""
    ratios = [bar["ratio"] for entry in entries for bar in entry["bars"] if bar["against"] == "best orthogonal"]
    found = MEAN.judged(math.prod(ratios) ** (1 / len(ratios)) if ratios else 0.0, "")
    name, ratio = f"geometric mean of {len(ratios)}", found["ratio"]
    print(f"{name:36} {'':19} {ratio:5.2f}x {MEAN.bar:5g} {MEAN.goal:5g} {found['mark']}", flush=True)
    return {"row": "geometric mean", "plan": "", "wrong": False, "bars": [found]}
