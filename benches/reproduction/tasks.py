"""docs/reproduction/TASK.md: the tables and curves of a task, and the commands that make them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from isometry.cli.compare.table import figure
from reproduction.cell import CELLS, FACTS, PARAMETERS, SEEDS, stem, title
from reproduction.cell import longer_run as plan
from reproduction.order import compared, with_interval
from reproduction.results import Entry, path
from reproduction.verdicts import cited, found, short

RESULTS = "../../benches/reproduction/results"


def page(task: str, results: Mapping[str, Sequence[Entry]], baselines: Mapping[str, float], docs: Path) -> list[str]:
    """The lines of a task's page; pictures are those that stand in docs/figures."""
    facts = FACTS["page"][task]
    lines = [f"# {facts['title']}", "", f"{facts['about']} [How to read this](../reproduction.md#reading-the-tables)."]
    for cell in cells_of(task):
        if entries := results[cell]:
            lines += ["", f"## {cell[:1].upper()}{cell[1:]}", "", *_section(cell, entries, baselines[cell], docs)]
    return lines


def cells_of(task: str) -> list[str]:
    return [name for name, cell in CELLS.items() if cell["task"] == task]


def _section(cell: str, entries: Sequence[Entry], baseline: float, docs: Path) -> list[str]:
    facts = CELLS[cell]
    size = f"{facts['hidden']} units" if "hidden" in facts else f"{facts.get('parameters', PARAMETERS):,} parameters"
    seeds = facts.get("seeds", SEEDS)
    lines = [
        f"{size}, {facts['updates']:,} updates, {seeds} seed{'s' if seeds > 1 else ''}. Baseline: {figure(baseline)}. "
        f"{cited(facts['paper'])}.",
        *(["", facts["about"]] if "about" in facts else []),
        "",
        *_table(cell, entries),
    ]
    if order := [line for model in short(entries) for line in _order(cell, model, entries)]:
        lines += ["", " ".join(order)]
    longer = [entry for entry in entries if entry.tier == "settle"]
    sources = [
        f"{title(entry.model)}, {entry.parameters:,} parameters: {cited(plan(cell, entry.model).get('source', ''))}."
        for entry in longer
    ]
    lines += ["", "Longer runs:", "", *(f"- {source}" for source in sources)] if longer else []
    lines += [*_picture(cell, "", docs), *_picture(cell, "-settle", docs)]
    command = next(iter(short(entries).values()), entries[0]).command
    return [*lines, "", f"Command: `{command} --seed 0`. {_measured(cell, entries)}"]


def _order(cell: str, model: str, entries: Sequence[Entry]) -> list[str]:
    """Which of the systems that a paper compares it with the accuracies separate it from."""
    names = FACTS["claim"][model].get("better", {}).get(cell, [])
    best = found(cell, model, entries).best
    order = {} if best is None else compared(cell, best, short(entries), names)
    groups = {word: [title(name) for name in order if order[name] == word] for word in dict.fromkeys(order.values())}
    said = "; ".join(f"{word} {', '.join(own)}" for word, own in groups.items())
    return [f"{title(model)}: {said}."] if said else []


def _measured(cell: str, entries: Sequence[Entry]) -> str:
    """When, for how long, and where the rest stands."""
    dates = sorted({date for entry in entries for date in entry.dates})
    kept = [entry for entry in entries if entry.seconds]
    runs = sum(entry.seeds for entry in kept)
    name = path(cell).name
    text = f"Results: [{name}]({RESULTS}/{name}), {' to '.join(dict.fromkeys((dates[0], dates[-1])))}"
    if runs:
        time = duration(sum(entry.seconds for entry in kept))
        text += f", {'one run' if runs == 1 else f'{runs} runs'}, {time}"
    return f"{text}."


def duration(seconds: float) -> str:
    """In minutes or, from an hour on, hours."""
    hours = seconds / 3600
    return f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} minutes"


def _table(cell: str, entries: Sequence[Entry]) -> list[str]:
    """A row for each system and one for each longer run: size, seeds, loss, scores on test data where there are any,
    time and e(W). Parameters stand where sizes are given instead.
    """
    given = "hidden" in CELLS[cell] or any("hidden" in change for change in CELLS[cell].get("change", {}).values())
    kind = "tests" if any(entry.tests for entry in entries) else "scores"
    scores = list(dict.fromkeys(name for entry in entries for name in getattr(entry, kind)))
    names = ["", "n", *(["parameters"] if given else []), "learnt", "over baseline"]
    names += [f"test {name}" if kind == "tests" else name for name in scores]
    names += ["half", "ms", "e(W)"]
    several = ["test accuracy"] if "images" in CELLS[cell] else []  # numbers that break into lines
    ends = ["---" if name in ("", *several) else "---:" for name in names]
    lines = [f"| {' | '.join(names)} |", f"|{'|'.join(ends)}|"]
    for entry in [*short(entries).values(), *(entry for entry in entries if entry.tier == "settle")]:
        row = [_name(cell, entry), f"{entry.hidden:,}", *([f"{entry.parameters:,}"] if given else [])]
        row += [f"{entry.learnt}/{entry.seeds}"]
        own = getattr(entry, kind)
        row += [figure(entry.ratio), *(with_interval(cell, own, name) if name in own else "" for name in scores)]
        row += [figure(entry.half, digits=0), figure(entry.ms, digits=1), figure(entry.error)]
        lines.append(f"| {' | '.join(row)} |")
    return lines


def _name(cell: str, entry: Entry) -> str:
    """Of a row: with the updates where they are not the cell's, and a star where the curves were not kept."""
    odd = entry.tier == "settle" or (entry.tier == "quick" and entry.updates != CELLS[cell]["updates"])
    return title(entry.model) + ("" if entry.curves else "\\*") + (f", {entry.updates:,} updates" if odd else "")


def _picture(cell: str, suffix: str, docs: Path) -> list[str]:
    name = f"reproduction-{stem(cell)}{suffix}.png"
    return ["", f"![Curves of {cell}](../figures/{name})"] if (docs / "figures" / name).is_file() else []


def vowels(table: str) -> list[str]:
    """The table of the example with real data, as it was printed."""
    rows = [line for line in table.splitlines() if line.startswith("|")]
    return ["# Japanese Vowels", "", FACTS["text"]["vowels"].strip(), "", *rows]
