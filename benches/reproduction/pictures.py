"""The pictures of the reproduction: curves where the results have them, otherwise the losses at the end alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isometry.cli import plots
from reproduction.cell import CELLS, stem, title
from reproduction.results import Entry

TOP = 4.0  # times the baseline: where the axis of the loss ends


def draw(cell: str, entries: Sequence[Entry], docs: Path) -> None:
    """A picture of the short runs of a cell, and one of its longer runs."""
    for suffix, longer in (("", False), ("-settle", True)):
        own = [entry for entry in entries if (entry.tier == "settle") == longer]
        if not own:
            continue
        path = docs / "figures" / f"reproduction-{stem(cell)}{suffix}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = cell[:1].upper() + cell[1:] + (", longer runs" if longer else "")
        if all(entry.curves for entry in own):
            plots.bands(path, names(own), head, ["loss"], TOP)
            shrink(path)
        else:
            ends(path, own, head, CELLS[cell]["learnt"])


def names(entries: Sequence[Entry]) -> dict[str, tuple[dict[str, list[float]], ...]]:
    """The curves by the names of the tables, with the hidden size where a system is there twice."""
    models = [entry.model for entry in entries]
    sizes = [f", n = {e.hidden}" if models.count(e.model) > 1 else "" for e in entries]
    return {title(e.model) + size: e.curves for e, size in zip(entries, sizes, strict=True)}


def ends(path: Path, entries: Sequence[Entry], head: str, learnt: float) -> None:
    """The table's loss at the end over the baseline, the lowest first: the median of the seeds, and the best."""
    order = sorted(entries, key=lambda entry: entry.ratio)
    rows = range(len(order))
    figure, ((axis,),) = plots.sheet(1.1 + 0.2 * len(order))
    medians = np.array([entry.ratio for entry in order])
    best = np.array([entry.ratio * entry.best / entry.median for entry in order])
    colours = [plots.COLOURS[0] if ratio < learnt else plots.GREY for ratio in medians]
    axis.hlines(rows, best, medians, color=colours, linewidth=1)
    axis.scatter(best, rows, s=14, marker="|", color=colours)
    axis.scatter(medians, rows, s=28, color=colours, zorder=3)
    axis.axvline(learnt, color=plots.INK, linestyle=":", linewidth=1)
    axis.axvline(1, color=plots.INK, linestyle="--", linewidth=1)
    axis.set_xscale("log")
    plots.number_logarithms(axis.xaxis, *axis.get_xlim())
    axis.set_yticks(rows, [title(entry.model) for entry in order], fontsize=plots.LETTERS)
    axis.invert_yaxis()
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", which="both", labelsize=plots.LETTERS)
    axis.grid(axis="x", color="0.92")
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.set_title(head, loc="left", fontsize=plots.LETTERS + 2)
    said = (
        "loss at the end over the baseline: dot, median of the seeds; bar, the best",
        f"left of {learnt:g} (dotted): learnt; 1 (dashed): no better than the baseline",
    )
    axis.set_xlabel("\n".join(said), fontsize=plots.LETTERS)
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=150)
    shrink(path)


def shrink(path: Path) -> None:
    """A third of the size, in as many colours as lines and bands need."""
    from PIL import Image

    with Image.open(path) as whole:
        whole.convert("RGB").quantize(128).save(path, optimize=True)
