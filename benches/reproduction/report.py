"""docs/reproduction.md and docs/reproduction/TASK.md, from the results of benches/reproduction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isometry.cli import registry
from isometry.cli.compare.table import NOTE, figure
from reproduction import diagnosis_page as diagnosis
from reproduction import tasks
from reproduction.cell import CELLS, FACTS, longer_run, stem, title
from reproduction.order import compared, shown, with_interval
from reproduction.pictures import draw
from reproduction.results import FOLDER, Entry, entries, read
from reproduction.verdicts import ALSO, AS_CLAIMED, KIND, NOT_CLAIMED, Found, cited, says, short_name, verdict

LONG = "†"
COLUMNS = 6  # of tasks in a table
COUNTED = {
    "🟩": "came out as claimed",
    "🟧": "did not at this size",
    "🟨": "came out open",
    "🟥": "came out against the claim",
    "⬛": "were not run",
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
    found = {cell: sorted(entries(cell, results), key=lambda e: order.index(e.model)) for cell in CELLS}
    baselines = {cell: read(cell, results)["baseline"] for cell in CELLS}
    names = [task for task in FACTS["page"] if any(found[cell] for cell in tasks.cells_of(task))]
    measured = diagnosis.read(results)
    texts = {docs / f"reproduction/{task}.md": tasks.page(task, found, baselines, measured, docs) for task in names}
    vowels = results / "japanese-vowels.md"
    if vowels.is_file():
        texts[docs / "reproduction/japanese-vowels.md"] = tasks.vowels(vowels.read_text(encoding="utf-8"))
    texts[docs / "reproduction.md"] = _overview(found, [path.stem for path in texts], measured)
    return {path: "\n".join(lines) + "\n" for path, lines in texts.items()}


def _overview(
    results: Mapping[str, Sequence[Entry]], names: Sequence[str], measured: Sequence[Mapping[str, Any]]
) -> list[str]:
    models = list(dict.fromkeys(entry.model for own in results.values() for entry in own))
    models = [model for model in registry.names("model") if model in models]
    columns = [cell for cell in CELLS if not CELLS[cell].get("apart") and results[cell]]
    matrix = []
    for start in range(0, len(columns), COLUMNS):
        matrix += _matrix(columns[start : start + COLUMNS], models, results)
    lines = ["# Reproduction", "", TEXT["head"], "", _counts(results), "", *_legend(matrix), "", *matrix]
    if "japanese-vowels" in names:
        lines += ["Real data that no paper has: [Japanese Vowels](reproduction/japanese-vowels.md).", ""]
    for model in models:
        lines += _system(model, results)
        if (why := diagnosis.place(model)) and measured:
            lines += [f"{diagnosis.HEADING}, measured: {why}.", ""]
    hours = _hours([entry for own in results.values() for entry in own if entry.seconds])
    lines += ["## Reading the tables", "", f"{TEXT['reading'].replace('NOTE', NOTE)} {hours}", "", "## Papers", ""]
    lines += [f"- {short_name(key)}: {text}" for key, text in sorted(registry.papers()["paper"].items())]
    return [*lines, "", "```{toctree}", ":hidden:", "", *(f"reproduction/{name}" for name in names), "```"]


def _counts(results: Mapping[str, Sequence[Entry]]) -> str:
    """How many claims hold."""
    kinds = [
        KIND[verdict(cell, claim, _found(cell, model, results), _short(results[cell]))[0].partition(",")[0]]
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
    """What the words of the matrix mean, those that it has."""
    cells = "\n".join(matrix)
    words = [(line, re.findall(r"\*\*(.*?)\*\*", line)) for line in TEXT["words"].splitlines()]
    return [line for line, names in words if not names or any(f"[{name}" in cells for name in names)]


def _hours(kept: Sequence[Entry]) -> str:
    """The time of all runs whose time is known."""
    runs, seconds = sum(entry.seeds for entry in kept), sum(entry.seconds for entry in kept)
    time = tasks.duration(seconds)
    return f"The {runs} runs whose times were kept took {time} in all; some shared the machine with other programs."


def _matrix(cells: Sequence[str], models: Sequence[str], results: Mapping[str, Sequence[Entry]]) -> list[str]:
    """System by task."""
    heads = [f"[{cell}]({_place(cell)})" for cell in cells]
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(cells) + 1) + "|"]
    for model in models:
        claim, row = FACTS["claim"][model], []
        for cell in cells:
            short, found = _short(results[cell]), _found(cell, model, results)
            word, entry = verdict(cell, claim, found, short)
            to = f"#{_anchor(model)}" if says(claim, cell) else _place(cell)
            mark = LONG if entry is not None and entry is not found.short else ""
            text = f"{KIND[word.partition(',')[0]]} [{word}]({to})" if word else ""
            row.append(f"{text} {shown(cell, entry)}{mark}" if entry else text)
        lines.append(f"| [{title(model)}](#{_anchor(model)}) | {' | '.join(row)} |")
    return [*lines, ""]


def _anchor(model: str) -> str:
    """Of the system's section."""
    return title(model).lower()


def _place(cell: str) -> str:
    return f"reproduction/{CELLS[cell]['task']}.md#{stem(cell).lower()}"


def _short(own: Sequence[Entry]) -> dict[str, Entry]:
    """The short runs of a cell by model."""
    return {entry.model: entry for entry in own if entry.tier != "settle"}


def _found(cell: str, model: str, results: Mapping[str, Sequence[Entry]]) -> Found:
    longer = next((e for e in results[cell] if e.tier == "settle" and e.model == model), None)
    return Found(_short(results[cell]).get(model), longer, longer_run(cell, model).get("own", False))


def _system(model: str, results: Mapping[str, Sequence[Entry]]) -> list[str]:
    """Claim, figures, seeds and verdicts of a system, what is not claimed, and what would settle the rest."""
    claim = FACTS["claim"][model]
    own = {cell: _found(cell, model, results) for cell in CELLS}
    lines = [
        f"## {title(model)}",
        "",
        f"`it.nn.{title(model)}`, `--model {model}`: {cited(claim['paper'])}. {cited(claim['text'])}",
        "",
    ]
    rows, rest, ahead, order = [], {}, [], []
    for cell, found in own.items():
        word, entry = verdict(cell, claim, found, _short(results[cell]))
        if says(claim, cell) and results[cell]:
            rows += _rows(cell, found, word, entry)
            order += _order(cell, claim, entry, _short(results[cell]))
            if word != AS_CLAIMED and found.longer is None and (plan := longer_run(cell, model)):
                ahead.append(_estimate(cell, plan))
        elif found.best is not None:
            rest.setdefault(found.best.learnt > 0, []).append(cell + word.removeprefix(ALSO).removeprefix(NOT_CLAIMED))
    if rows:
        lines += ["| task | n | updates | loss over baseline | seeds that learnt | verdict |"]
        lines += ["|---|---:|---:|---:|---:|---|", *rows, ""]
    said = list(order)
    said += [f"Learnt but not claimed: {'; '.join(rest[True])}."] if True in rest else []
    said += [f"Neither claimed nor learnt: {'; '.join(rest[False])}."] if False in rest else []
    errors = [e.error for found in own.values() for e in found.entries if e.error == e.error]
    said += [f"e(W) at most {figure(max(errors))}."] if errors else []
    lines += [" ".join(said), ""]
    if "found" in claim:
        lines += [cited(claim["found"]), ""]
    return [*lines, *(["What would settle the rest:", "", *ahead, ""] if ahead else [])]


def _order(cell: str, claim: Mapping[str, Any], entry: Entry | None, others: Mapping[str, Entry]) -> list[str]:
    """Which of the systems that a paper compares it with the accuracies separate it from."""
    names = claim.get("better", {}).get(cell, [])
    found = {} if entry is None else compared(cell, entry, others, names)
    groups = {word: [title(name) for name in found if found[name] == word] for word in dict.fromkeys(found.values())}
    said = "; ".join(f"{word} {', '.join(own)}" for word, own in groups.items())
    return [f"{cell}: {said}."] if said else []


def _rows(cell: str, found: Found, word: str, decides: Entry | None) -> list[str]:
    """A row for the short runs and one for the longer ones; the verdict stands where it comes from."""
    link, rows = f"[{cell}]({_place(cell)})", []
    for entry in found.entries:
        tests = [f"{name} {with_interval(cell, entry.tests, name)}" for name in entry.tests if name != "loss"]
        loss = ", ".join([figure(entry.ratio), *tests])
        row = [link, f"{entry.hidden:,}", f"{entry.updates:,}", loss, f"{entry.learnt} of {entry.seeds}"]
        rows.append(f"| {' | '.join([*row, word if entry is decides else ''])} |")
    return rows or [f"| {link} | | | | | {word} |"]


def _estimate(cell: str, plan: Mapping[str, Any]) -> str:
    """A run that was not made: its size, its source and, where an update was timed, its time."""
    options = "".join(f", {name} {value}" for name, value in plan.get("options", {}).items())
    text = f"- {cell}: {plan['updates']:,} updates with n = {plan['hidden']:,}{options}"
    if ms := plan.get("ms"):
        time = tasks.duration(plan["updates"] * ms / 1e3)
        text += f", {time} of one core ({ms:g} ms an update)"
    return f"{text}. {cited(plan['source'])}."
