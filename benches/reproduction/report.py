"""docs/reproduction.md and docs/reproduction/TASK.md, from the results of benches/reproduction."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isometry.cli import registry
from reproduction import tasks
from reproduction.cell import CELLS, FACTS, longer_run, stem, title
from reproduction.pictures import draw
from reproduction.results import FOLDER, Entry, entries, read
from reproduction.verdicts import AS_CLAIMED, KIND, cited, found, says, short, verdict

LONG = "†"
COLUMNS = 9  # of tasks in a table
COUNTED = {
    "✓": "came out as claimed",
    "✗": "did not at this size",
    "?": "came out open",
    "!": "came out against the claim",
    "∅": "were not run",
}
TEXT = {name: text.strip() for name, text in FACTS["text"].items()}


def write(results: Path, docs: Path) -> list[Path]:
    """Write all pages and the pictures that the results have curves for; returns the pages' paths."""
    for cell in CELLS:
        draw(cell, entries(cell, results), docs)
    texts = pages(results, docs)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def pages(results: Path = FOLDER, docs: Path = FOLDER.parents[2] / "docs") -> dict[Path, str]:
    """The text of every page."""
    order = registry.names("model")
    own = {cell: sorted(entries(cell, results), key=lambda e: order.index(e.model)) for cell in CELLS}
    baselines = {cell: read(cell, results)["baseline"] for cell in CELLS}
    names = [task for task in FACTS["page"] if any(own[cell] for cell in tasks.cells_of(task))]
    texts = {docs / f"reproduction/{task}.md": tasks.page(task, own, baselines, docs) for task in names}
    vowels = results / "japanese-vowels.md"
    if vowels.is_file():
        texts[docs / "reproduction/japanese-vowels.md"] = tasks.vowels(vowels.read_text(encoding="utf-8"))
    texts[docs / "reproduction.md"] = _overview(own, [path.stem for path in texts])
    return {path: "\n".join(lines) + "\n" for path, lines in texts.items()}


def _overview(results: Mapping[str, Sequence[Entry]], names: Sequence[str]) -> list[str]:
    models = list(dict.fromkeys(entry.model for own in results.values() for entry in own))
    models = [model for model in registry.names("model") if model in models]
    columns = [cell for cell in CELLS if not CELLS[cell].get("apart") and results[cell]]
    matrix = []
    for start in range(0, len(columns), COLUMNS):
        matrix += _matrix(columns[start : start + COLUMNS], models, results)
    lines = ["# Reproduction", "", TEXT["head"], "", _counts(results), "", *_legend(matrix), "", *matrix]
    if "japanese-vowels" in names:
        lines += ["Real data that no paper has: [Japanese Vowels](reproduction/japanese-vowels.md).", ""]
    lines += ["## What the papers claim", ""]
    for model in models:
        lines += _system(model, results)
    hours = _hours([entry for own in results.values() for entry in own if entry.seconds])
    lines += ["", "## Reading the tables", "", f"{TEXT['reading']} {hours}", "", "## Papers", ""]
    lines += [f"- {text.partition('; ')[0]}" for _, text in sorted(registry.papers()["paper"].items())]
    return [*lines, "", "```{toctree}", ":hidden:", "", *(f"reproduction/{name}" for name in names), "```"]


def _counts(results: Mapping[str, Sequence[Entry]]) -> str:
    """How many claims hold."""
    kinds = [
        KIND[verdict(cell, claim, found(cell, model, results[cell]), short(results[cell]))[0].partition(",")[0]]
        for model, claim in FACTS["claim"].items()
        for cell in CELLS
        if says(claim, cell) and results[cell]
    ]
    counts = {text: kinds.count(kind) for kind, text in COUNTED.items() if kind in kinds}
    parts = [f"{n} {text.replace('were', 'was') if n == 1 else text}" for text, n in counts.items()]
    if not parts:
        return "No claim about these tasks was tried."
    said = " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
    return f"Of {len(kinds)} claims about these tasks {said}."


def _legend(matrix: Sequence[str]) -> list[str]:
    """What the marks of the matrix mean, those that it has; a line without one stands always."""
    cells = "\n".join(matrix)
    marks = set(KIND.values())
    return [line for line in TEXT["words"].splitlines() if line[2] not in marks or line[2] in cells]


def _hours(kept: Sequence[Entry]) -> str:
    """The time of all runs whose time is known."""
    runs, seconds = sum(entry.seeds for entry in kept), sum(entry.seconds for entry in kept)
    time = tasks.duration(seconds)
    return f"The {runs} runs whose times were kept took {time}."


def _matrix(cells: Sequence[str], models: Sequence[str], results: Mapping[str, Sequence[Entry]]) -> list[str]:
    """System by task."""
    heads = [f"[{cell}](reproduction/{CELLS[cell]['task']}.md#{stem(cell).lower()})" for cell in cells]
    lines = [f"| | {' | '.join(heads)} |", "|---" + "|:---:" * len(cells) + "|"]
    for model in models:
        row = [_mark(cell, model, results[cell]) for cell in cells]
        lines.append(f"| {title(model)} | {' | '.join(row)} |")
    return [*lines, ""]


def _mark(cell: str, model: str, own: Sequence[Entry]) -> str:
    """The verdict, and whether it rests on a longer run."""
    results = found(cell, model, own)
    word, entry = verdict(cell, FACTS["claim"][model], results, short(own))
    mark = KIND[word.partition(",")[0]] if word else ""
    if entry is None:
        return mark
    return mark + ("" if entry is results.short else LONG)


def _system(model: str, results: Mapping[str, Sequence[Entry]]) -> list[str]:
    """What a paper claims of a system, what else was seen, and what would settle the rest."""
    claim, ahead = FACTS["claim"][model], []
    for cell, own in results.items():
        seen = found(cell, model, own)
        word, _ = verdict(cell, claim, seen, short(own))
        if (
            says(claim, cell)
            and own
            and word != AS_CLAIMED
            and seen.longer is None
            and (plan := longer_run(cell, model))
        ):
            ahead.append(_estimate(cell, plan))
    parts = [cited(claim["text"]), *([cited(claim["found"])] if "found" in claim else [])]
    parts += [f"To be settled by: {'; '.join(ahead)}."] if ahead else []
    return [f"- **{title(model)}** (`{model}`; {cited(claim['paper'])}). {' '.join(parts)}"]


def _estimate(cell: str, plan: Mapping[str, Any]) -> str:
    """A run that was not made: its size, its source and, where an update was timed, its time."""
    options = "".join(f", {name} {value}" for name, value in plan.get("options", {}).items())
    text = f"{cell}, {plan['updates']:,} updates with n = {plan['hidden']:,}{options}"
    if ms := plan.get("ms"):
        time = tasks.duration(plan["updates"] * ms / 1e3)
        text += f", {time} of one core ({ms:g} ms an update)"
    return f"{text} ({cited(plan['source'])})"
