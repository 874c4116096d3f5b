"""docs/reproduction/TASK.md: the tables and curves of a task, and the commands that make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isometry.cli.compare.table import figure
from reproduction import diagnosis_page as diagnosis
from reproduction.cell import CELLS, FACTS, PARAMETERS, SEEDS, stem, title
from reproduction.cell import longer_run as plan
from reproduction.order import with_interval
from reproduction.results import Entry
from reproduction.verdicts import cited


def page(
    task: str,
    results: Mapping[str, Sequence[Entry]],
    baselines: Mapping[str, float],
    measured: Sequence[Mapping[str, Any]],
    docs: Path,
) -> list[str]:
    """The lines of a task's page; pictures are those that stand in docs/figures."""
    facts = FACTS["page"][task]
    lines = [f"# {facts['title']}", "", f"{facts['about']} [How to read this](../reproduction.md#reading-the-tables)."]
    for cell in cells_of(task):
        if entries := results[cell]:
            lines += ["", f"## {cell[:1].upper()}{cell[1:]}", "", *_section(cell, entries, baselines[cell], docs)]
    return lines + diagnosis.section(task, measured, docs)


def cells_of(task: str) -> list[str]:
    return [name for name, cell in CELLS.items() if cell["task"] == task]


def _section(cell: str, entries: Sequence[Entry], baseline: float, docs: Path) -> list[str]:
    facts = CELLS[cell]
    short, longer = [e for e in entries if e.tier != "settle"], [e for e in entries if e.tier == "settle"]
    options = ", ".join(f"{name} {value}" for name, value in facts["options"].items())
    parameters = f"{facts.get('parameters', PARAMETERS):,} parameters"
    size = f"{facts['hidden']} units" if "hidden" in facts else parameters
    head = ", ".join([size, f"{facts['updates']:,} updates", *([options] if options else [])])
    learnt = f"Learnt: below {facts['learnt']:g} of the baseline, {figure(baseline)}."
    lines = [
        f"{head}; seeds: {facts.get('seeds', SEEDS)}. {learnt} {cited(facts['paper'])}.",
        *(["", facts["about"]] if "about" in facts else []),
    ]
    if short:
        lines += ["", *_table(cell, short, updates=False), *_remarks(facts, short), *_picture(cell, "", docs)]
        lines += ["", f'`python benches/reproduction run --cells "{cell}"`; one run: `{short[0].command} --seed 0`.']
    if longer:
        sources = [f"- {title(entry.model)}: {cited(plan(cell, entry.model).get('source', ''))}." for entry in longer]
        lines += ["", "Longer runs:", "", *sources, "", *_table(cell, longer, updates=True)]
    lines += _picture(cell, "-settle", docs)
    if longer:
        lines += ["", f'`python benches/reproduction run --tier settle --cells "{cell}"`']
    return [*lines, "", _measured(entries)]


def _measured(entries: Sequence[Entry]) -> str:
    """When and on what."""
    machines = dict.fromkeys(machine for entry in entries for machine in entry.machines)
    dates = {machine: {date for e in entries if machine in e.machines for date in e.dates} for machine in machines}
    text = "Measured: " + "; ".join(f"{name}, {', '.join(sorted(dates[name]))}" for name in machines)
    kept = [entry for entry in entries if entry.seconds]
    runs = sum(entry.seeds for entry in kept)
    return (
        f"{text}. Training time of {_count(runs)}: {duration(sum(entry.seconds for entry in kept))}."
        if kept
        else f"{text}."
    )


def _count(runs: int) -> str:
    return "one run" if runs == 1 else f"{runs} runs"


def duration(seconds: float) -> str:
    """In minutes or, from an hour on, hours."""
    hours = seconds / 3600
    return f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} minutes"


def _table(cell: str, entries: Sequence[Entry], *, updates: bool) -> list[str]:
    """A row for each system: size, seeds, losses, scores on test data where there are any, time, e(W)."""
    kind = "tests" if any(entry.tests for entry in entries) else "scores"
    scores = list(dict.fromkeys(name for entry in entries for name in getattr(entry, kind)))
    names = ["", "n", "parameters", *(["updates"] if updates else [])]
    names += ["learnt", "loss, best", "median", "over baseline"]
    names += [f"test {name}" if kind == "tests" else name for name in scores]
    names += ["half the baseline", "ms", "e(W)"]
    lines = [f"| {' | '.join(names)} |", "|---" + "|---:" * (len(names) - 1) + "|"]
    for entry in entries:
        learnt = f"{entry.learnt} of {entry.seeds}"
        row = [
            title(entry.model),
            f"{entry.hidden:,}",
            f"{entry.parameters:,}",
            *([f"{entry.updates:,}"] if updates else []),
        ]
        row += [learnt, figure(entry.best), figure(entry.median), figure(entry.ratio)]
        row += [_score(cell, getattr(entry, kind), name) for name in scores]
        row += [figure(entry.half, digits=0), figure(entry.ms, digits=1), figure(entry.error)]
        lines.append(f"| {' | '.join(row)} |")
    return lines


def _score(cell: str, scores: Mapping[str, float], name: str) -> str:
    return with_interval(cell, scores, name) if name in scores else ""


def _remarks(facts: Mapping[str, Any], entries: Sequence[Entry]) -> list[str]:
    """The measure of the losses, and systems with other updates than the cell's."""
    whole = [title(entry.model) for entry in entries if entry.curves]
    measure = f"the median of the last twentieth of the updates{_but(whole, len(entries))}"
    odd = [e for e in entries if e.tier == "quick" and e.updates != facts["updates"]]
    said = [f"{title(entry.model)}: {entry.updates:,} updates." for entry in odd]
    return ["", " ".join([f"Losses at the end: {measure}.", *said])]


def _but(whole: Sequence[str], count: int) -> str:
    """Of which runs the measure is another, as of all whose seeds were not kept."""
    if len(whole) == count:
        return ""
    return f" for {' and '.join(whole)}; the mean for all others, whose curves were not kept"


def _picture(cell: str, suffix: str, docs: Path) -> list[str]:
    name = f"reproduction-{stem(cell)}{suffix}.png"
    return ["", f"![Curves of {cell}](../figures/{name})"] if (docs / "figures" / name).is_file() else []


def vowels(table: str) -> list[str]:
    """The table of the example with real data, as it was printed."""
    rows = [line for line in table.splitlines() if line.startswith("|")]
    return ["# Japanese Vowels", "", FACTS["text"]["vowels"].strip(), "", *rows]
