"""The part of a task's page that says why some systems do not learn it: what `diagnosis` measured, and why."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isometry.cli.compare.table import figure
from isometry.cli.settings import SETTINGS, option
from reproduction.cell import CELLS, FACTS, title
from reproduction.verdicts import cited

HEADING = "Why some do not learn"
PICTURE = "diagnosis.png"
SMALLEST = 1e-38  # of single precision
HEADS = ("", "n", "updates", "loss", "gradient", "singular values", "agreement", "closed", "norms of h", "value × mark")
ENDS = ["---" if name in ("", "singular values", "norms of h") else "---:" for name in HEADS]  # several numbers break


def cases(task: str) -> list[Mapping[str, Any]]:
    """Those of a task, in the order of the file."""
    return [case for case in FACTS["diagnosis"] if CELLS[case["cell"]]["task"] == task]


def place(model: str) -> str:
    """Where the page says why a system does not learn; empty where nothing was measured."""
    tasks = [CELLS[case["cell"]]["task"] for case in FACTS["diagnosis"] if case["model"] == model]
    return f"reproduction/{tasks[0]}.md#{HEADING.lower().replace(' ', '-')}" if tasks else ""


def read(results: Path) -> list[dict[str, Any]]:
    """The measurements; none where there is no file."""
    file = results / "diagnosis.json"
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    return found


def section(task: str, measured: Sequence[Mapping[str, Any]], docs: Path) -> list[str]:
    """The lines of the section; none for a task without measurements."""
    own = rows(task, measured)
    if not own:
        return []
    lines = ["", f"## {HEADING}", "", cited(FACTS["text"]["diagnosis"].strip())]
    if (docs / "figures" / PICTURE).is_file():
        lines += ["", f"![Gradients and singular values over time](../figures/{PICTURE})"]
    lines += ["", f"| {' | '.join(HEADS)} |", f"|{'|'.join(ENDS)}|", *map(_row, own)]
    for case in cases(task):
        changes = ", ".join(_option(*pair) for pair in case.get("instead", {}).items())
        head = f"{title(case['model'])}, {case['cell']}" + (f"; changed: {changes}" if changes else "")
        lines += ["", f"**{head}.** {cited(' '.join(case['text'].split()))}"]
    return lines


def rows(task: str, measured: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The measurements of a task; a change that is none at the start stands there once."""
    found: list[Mapping[str, Any]] = []
    for entry in measured:
        same = [other for other in found if other | {"instead": entry["instead"]} == entry]
        if CELLS[entry["cell"]]["task"] == task and not same:
            found.append(entry)
    return found


def _row(entry: Mapping[str, Any]) -> str:
    """The gradient that reaches the first step over that at the nearest; the spectrum over the whole sequence."""
    near, *_, far = (value or 0.0 for value in entry["gradient"])
    name = f"{title(entry['model'])}, {entry['cell']}" + (", changed" if entry["instead"] else "")
    agreement, curvature = (math.nan if v is None else v for v in (entry["agreement"][-1], entry["curvature"]))
    cells = [name, f"{entry['hidden']:,}", f"{entry['updates']:,}"]
    cells += ["" if entry["loss"] is None else figure(entry["loss"]), figure(far / near if near else math.nan)]
    cells += [", ".join(figure(value if value > SMALLEST else 0.0) for value in entry["singular"][-1])]
    cells += [figure(agreement), f"{100 * entry['closed']:.0f} %"]
    cells += [", ".join(map(figure, entry["norms"])), figure(curvature)]
    return f"| {' | '.join(cells)} |"


def _option(name: str, value: Any) -> str:
    return f"{option(name)[2:]} {value}" if name in SETTINGS else f"{name} {value}"
