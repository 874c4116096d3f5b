"""docs/reproduction.md and its pictures, from the runs of benches/reproduction.py."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image
from reproduction_cell import Cell

from isometry.cli import plots, registry
from isometry.cli.compare.results import Comparison, Result, Variant, load
from isometry.cli.compare.table import NOTE, figure, markdown
from isometry.cli.info import facts as machine

SHOWN = ("isometry", "processor", "torch")  # of the machine


def write(
    cells: Sequence[Cell], facts: Mapping[str, Any], tier: str, failed: Mapping[str, str], vowels: Path, docs: Path
) -> Path:
    """Write the report and a picture of each cell below `docs`; returns the report's path.

    `vowels` is what examples/japanese_vowels.py has printed, if there is such a file.
    """
    results = {cell.name: found(cell) for cell in cells}
    models = list(dict.fromkeys(name for cell in cells for name in (*cell.runs, *cell.missing)))
    (docs / "figures").mkdir(parents=True, exist_ok=True)
    lines = [*_head(cells, facts, tier), *_systems(cells, results, models, facts), *_matrix(cells, results, models)]
    for cell in cells:
        lines += _section(cell, results[cell.name], docs)
    lines += [*_vowels(vowels), *_left_out(cells, failed)]
    path = docs / "reproduction.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def found(cell: Cell) -> dict[str, Variant]:
    """The runs of a cell that have a row, by model."""
    loaded = {model: [r for run in runs if (r := load(run.folder.path))] for model, runs in cell.runs.items()}
    return {model: Variant(model, runs) for model, runs in loaded.items() if runs}


def learnt(cell: Cell, run: Result) -> bool:
    """Whether the loss at the end is below the cell's share of the baseline."""
    return run.final("loss") < cell.facts["learnt"] * run.columns["baseline"][0]


def _head(cells: Sequence[Cell], facts: Mapping[str, Any], tier: str) -> list[str]:
    size = facts["tier"][tier]
    known = dict(machine())
    where = ", ".join(f"{name} {known[name]}" if name != "processor" else known[name] for name in SHOWN)
    lines = [
        "# Reproduction",
        "",
        "What the papers claim for each system, and what a desktop makes of it: the same tasks at smaller sizes and "
        f"with far fewer updates. On a task every network has about as many trained parameters, its hidden size solved "
        f"for; seeds: {size['seeds']}. Rates and all else are those of "
        "[papers.toml](../python/isometry/cli/papers.toml), nothing is tuned for this report. A task counts as learnt "
        "when the loss at the end, the mean over the last twentieth of the updates, is below the share of the baseline "
        "that the table gives.",
        "",
        f"`python benches/reproduction.py --tier {tier}` makes the runs and this page. {where}.",
        "",
        "| task | parameters | updates | options | learnt below | the papers |",
        "|---|---:|---:|---|---:|---|",
    ]
    for cell in cells:
        options = ", ".join(f"{name} {value}" for name, value in cell.facts["options"].items())
        sizes = (f"{cell.parameters:,}", f"{cell.updates:,}")
        cells_of_row = (cell.name, *sizes, options, f"{cell.facts['learnt']:g}", cell.facts["paper"])
        lines.append(f"| {' | '.join(cells_of_row)} |")
    return [*lines, "", NOTE, ""]


def _systems(
    cells: Sequence[Cell], results: Mapping[str, dict[str, Variant]], models: Sequence[str], facts: Mapping[str, Any]
) -> list[str]:
    """A row for each system: claim, what was run, what came out, and how the two agree."""
    lines = [
        "## Systems",
        "",
        "| system | its paper claims | run here | came out | in a word |",
        "|---|---|---|---|---|",
    ]
    for model in models:
        claim = facts["claim"].get(model, {})
        own = {cell.name: results[cell.name][model] for cell in cells if model in results[cell.name]}
        text = f"{claim['text']} ({claim['paper']})" if claim else "no claim recorded"
        row = (model, text, _run(own), _outcome(cells, own), _word(cells, own, claim))
        lines.append(f"| {' | '.join(cell or '–' for cell in row)} |")
    return [*lines, ""]


def _run(own: Mapping[str, Variant]) -> str:
    """Sizes and number of runs."""
    if not own:
        return "nothing"
    sizes = sorted({variant.hidden for variant in own.values()})
    n = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    runs = sum(len(variant.runs) for variant in own.values())
    errors = [e for v in own.values() for r in v.runs if not math.isnan(e := r.columns["orthogonality_error"][-1])]
    orthogonal = f", e(W) at most {figure(max(errors))}" if errors else ""
    return f"n = {n}, {runs} runs on {len(own)} tasks{orthogonal}"


def _outcome(cells: Sequence[Cell], own: Mapping[str, Variant]) -> str:
    """Median loss of each task with its baseline, or the median test score."""
    parts = []
    for cell in cells:
        if cell.name not in own:
            continue
        variant = own[cell.name]
        tests = [name for name in variant.runs[0].tests if name != "loss"]
        shown = [f"{name} {figure(variant.median(r.tests[name] for r in variant.runs if r.tests))}" for name in tests]
        if not shown:
            loss = variant.median(run.final("loss") for run in variant.runs)
            shown = [f"{figure(loss)} of {figure(variant.runs[0].columns['baseline'][0])}"]
        parts.append(f"{cell.name}: {', '.join(shown)}")
    return "; ".join(parts)


def _word(cells: Sequence[Cell], own: Mapping[str, Variant], claim: Mapping[str, Any]) -> str:
    """How the outcome agrees with the claim, from the numbers alone."""
    claimed, denied = claim.get("learns", []), claim.get("fails", [])
    groups: dict[str, list[str]] = {}
    for cell in cells:
        if cell.name not in own:
            if cell.name in claimed or cell.name in denied:
                groups.setdefault("not run", []).append(cell.name)
            continue
        runs = own[cell.name].runs
        right = sum(learnt(cell, run) for run in runs)
        short = any(run.done < run.settings["iterations"] for run in runs)
        part = cell.name if right in (0, len(runs)) else f"{cell.name} ({right} of {len(runs)} seeds)"
        part += " (unfinished)" if short else ""
        if cell.name in claimed:
            word = "as claimed" if right else "claimed, but not learnt within these updates"
        elif cell.name in denied:
            word = "learnt, against the reports" if right else "not learnt, as reported"
        else:
            word = "also learnt" if right else "not learnt, nor claimed"
        groups.setdefault(word, []).append(part)
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in groups.items())


def _matrix(cells: Sequence[Cell], results: Mapping[str, dict[str, Variant]], models: Sequence[str]) -> list[str]:
    """Median loss over baseline, system by task."""
    lines = [
        "## Loss over baseline",
        "",
        "Medians over the seeds; bold where most seeds have learnt the task.",
        "",
        f"| | {' | '.join(cell.name for cell in cells)} |",
        "|---" + "|---:" * len(cells) + "|",
    ]
    for model in models:
        row = []
        for cell in cells:
            variant = results[cell.name].get(model)
            if variant is None:
                row.append("")
                continue
            ratio = figure(variant.median(r.final("loss") / r.columns["baseline"][0] for r in variant.runs))
            most = 2 * sum(learnt(cell, run) for run in variant.runs) > len(variant.runs)
            row.append(f"**{ratio}**" if most else ratio)
        lines.append(f"| {model} | {' | '.join(row)} |")
    return [*lines, ""]


def _section(cell: Cell, variants: Mapping[str, Variant], docs: Path) -> list[str]:
    """The table of `isometry compare` and the curves of a cell."""
    if not variants:
        return []
    name = f"reproduction-{cell.stem}.png"
    curves = {model: [run.columns for run in variant.runs] for model, variant in variants.items()}
    picture = docs / "figures" / name
    plots.bands(picture, curves, cell.name[:1].upper() + cell.name[1:])
    with Image.open(picture) as whole:  # a third of the size, in as many colours as lines and bands need
        whole.convert("RGB").quantize(128).save(picture, optimize=True)
    comparison = Comparison(cell.name, list(variants.values()))
    return [markdown(comparison, note=False), f"![Curves of {cell.name}](figures/{name})", ""]


def _vowels(path: Path) -> list[str]:
    """The table of the example with real data, as it was printed."""
    if not path.is_file():
        return []
    table = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    text = (
        "Nine men say the vowels /ae/: 270 utterances of 7 to 29 frames are trained on, 370 test. Every layer reads "
        "PackedSequences, torch's LSTM, GRU and RNN too; all have 64 units, 60 epochs of Adam with the rate 3e-3, five "
        "seeds; nothing is tuned. Made by [japanese_vowels.py](../examples/japanese_vowels.py)."
    )
    return ["## Real data: Japanese Vowels", "", text, "", *table, ""]


def _left_out(cells: Sequence[Cell], failed: Mapping[str, str]) -> list[str]:
    """What could not be run, with its reason."""
    lines = [f"- {cell.name}: {reason}" for cell in cells for reason in _reasons(cell)]
    lines += [f"- {name} failed: {message}" for name, message in failed.items()]
    return ["## Left out", "", *lines] if lines else []


def _reasons(cell: Cell) -> list[str]:
    """One line if all models lack the cell for the same reason."""
    if cell.facts["task"] not in registry.names("task"):
        return [f"this version has no task {cell.facts['task']}"]
    reasons = dict.fromkeys(cell.missing.values())
    if not cell.runs and len(reasons) == 1:
        return list(reasons)
    return [f"{model}: {reason}" for model, reason in cell.missing.items()]
