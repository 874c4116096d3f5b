"""curves.png: loss with its baseline, scores, and the distance of W from orthogonality, of one or several runs.

A line shows at every update the median over the twentieth of the run that ends there, so that its end is the figure of
the tables. Behind single runs the rows of metrics.csv are faint. At most six runs have a colour, those with the lowest
loss at the end; names stand where the lines end.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isometry.cli.run_folder import COLUMNS

Columns = Mapping[str, Sequence[float]]
TAIL = 20  # the figures at the end are medians over the last twentieth of the updates
MEASURE = "running median over 5 % of the updates"
ROUNDING = 20  # e(W) below this is rounding
LABELS = {"loss": "loss", "orthogonality_error": "e(W) in n eps"}  # on logarithmic axes
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # told apart by the colour-blind too
GREY, INK = "0.62", "0.35"
LETTERS = 9  # points; on a telephone the picture is as wide as the page, and these are still read


def curves(path: Path, runs: Mapping[str, Columns], title: str, panels: Sequence[str] | None = None) -> None:
    """Write one picture of the runs' columns (name of the run -> columns of its metrics.csv); `panels` are names of
    columns, by default all that there are.
    """
    _draw(path, {name: [columns] for name, columns in runs.items()}, title, panels, rows=True)


def bands(
    path: Path,
    groups: Mapping[str, Sequence[Columns]],
    title: str,
    panels: Sequence[str] | None = None,
    top: float = np.inf,
) -> None:
    """Write one picture of several groups of runs, each a line, the median of its runs, and for those with a colour a
    band from the lowest to the highest of them. The axis of the loss ends at `top` times the baseline, or times the
    largest loss at the end if that is larger.
    """
    _draw(path, groups, title, panels, rows=False, top=top)


def sheet(height: float, rows: int = 1, columns: int = 1, **keywords: Any) -> tuple[Any, np.ndarray]:
    """A figure as wide as a telephone, whose letters are still read there, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **keywords)


def trailing(iterations: Sequence[float] | np.ndarray, values: Sequence[float] | np.ndarray) -> np.ndarray:
    """At every row the median over the rows of the last twentieth of the run up to it."""
    at, found = np.asarray(iterations, float), np.asarray(values, float)
    first = np.searchsorted(at, at - at[-1] / TAIL, side="right") if at.size else at
    return np.array([np.median(found[start : k + 1]) for k, start in enumerate(first)])


def _draw(
    path: Path,
    groups: Mapping[str, Sequence[Columns]],
    title: str,
    panels: Sequence[str] | None,
    *,
    rows: bool,
    top: float = np.inf,
) -> None:
    """A panel for the loss, each score and e(W)."""
    from matplotlib.ticker import MaxNLocator

    runs = [columns for own in groups.values() for columns in own]
    shown = panels or _panels(runs)
    heights = [3.2 if name == "loss" else 1.7 for name in shown]
    figure, axes = sheet(0.9 + sum(heights), len(shown), sharex=True, height_ratios=heights)
    axes = axes[:, 0]
    colours = _colours(groups)
    for axis, name in zip(axes, shown, strict=True):
        own = [columns for columns in runs if name in columns]
        values = np.concatenate([_finite(columns, name)[1] for columns in own])
        log = name in LABELS and values.size > 0 and bool(values.min() > 0)
        for group, members in groups.items():
            _line(axis, group, [c for c in members if name in c], name, colours.get(group), rows)
        _finish(axis, name, values, log, next((c["baseline"][0] for c in own if c["baseline"]), np.nan), top)
    axes[0].set_title(title, loc="left", fontsize=LETTERS + 2)
    seeds = "; bands: lowest to highest seed" if any(len(own) > 1 for own in groups.values()) else ""
    faint = "; faint: single updates" if rows else ""
    axes[-1].set_xlabel(f"update\n{MEASURE}{seeds}{faint}", fontsize=LETTERS)
    axes[-1].xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes[-1].xaxis.set_major_formatter("{x:,.0f}")
    figure.align_ylabels()
    name_ends(axes[0], colours, (heights[0] - 0.5) * 72)
    figure.savefig(path, dpi=150)


def _panels(runs: Sequence[Columns]) -> list[str]:
    """The loss, each score, and e(W) if a run has it."""
    scores = dict.fromkeys(name for columns in runs for name in list(columns)[COLUMNS:])
    errors = any(np.isfinite(columns["orthogonality_error"]).any() for columns in runs)
    return ["loss", *scores, *(["orthogonality_error"] if errors else [])]


def _colours(groups: Mapping[str, Sequence[Columns]]) -> dict[str, str]:
    """A colour for each of the groups that end lowest, as many as there are colours."""
    ends = {}
    for name, runs in groups.items():
        found = [trailing(*_finite(columns, "loss"))[-1] for columns in runs if _finite(columns, "loss").size]
        ends[name] = float(np.median(found)) if found else np.inf
    lowest = sorted(ends, key=ends.__getitem__)[: len(COLOURS)]
    return dict(zip((name for name in groups if name in lowest), COLOURS, strict=False))


def _line(axis: Any, group: str, runs: Sequence[Columns], name: str, colour: str | None, rows: bool) -> None:
    """The median of a group's runs, in a band if it has a colour; with `rows` all values, faint."""
    found = [own for columns in runs if (own := _finite(columns, name)).size]
    if not found:
        return
    smooth = [(at, trailing(at, y)) for at, y in found]
    x = max((at for at, _ in smooth), key=lambda at: float(at[-1]))  # of the run that went furthest
    values = np.stack([np.interp(x, at, y, left=np.nan, right=np.nan) for at, y in smooth])
    style = {"color": colour or GREY, "zorder": 3 if colour else 2, "linewidth": 1.8 if colour else 0.9}
    if rows:
        for at, y in found:
            axis.plot(at, y, color=style["color"], alpha=0.3, linewidth=0.8)
    axis.plot(x, np.nanmedian(values, 0), **style, label=group)
    if len(smooth) > 1 and colour:
        axis.fill_between(x, np.nanmin(values, 0), np.nanmax(values, 0), color=colour, alpha=0.15, linewidth=0)


def name_ends(axis: Any, colours: Mapping[str, str], height: float) -> None:
    """The names of the axis's lines right of where they end, in a panel of some height in points; the names with a
    colour first if there is not room for all.
    """
    lines = [line for line in axis.lines if not line.get_label().startswith("_")]
    lines = sorted(lines, key=lambda line: line.get_label() not in colours)[: int(height // (LETTERS + 2))]
    axis.set_ylim(axis.get_ylim())
    place = axis.transData + axis.transAxes.inverted()
    ends = {line.get_label(): (line.get_xdata()[-1], line.get_ydata()[-1]) for line in lines}
    wanted = {name: float(place.transform(end)[1]) for name, end in ends.items()}
    for name, y in spread(wanted, (LETTERS + 2) / height).items():
        colour = colours.get(name, INK)
        size = LETTERS if name in colours else LETTERS - 1
        arrow = {"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkB": 1, "relpos": (0, 0.5)}
        style = {"va": "center", "color": colour, "fontsize": size, "arrowprops": arrow}
        axis.annotate(name, ends[name], (1.06, y), textcoords="axes fraction", **style)


def spread(wanted: Mapping[str, float], gap: float) -> dict[str, float]:
    """Places between 0 and 1 at least a gap apart, in the order of the wanted ones and near them."""
    names = sorted(wanted, key=wanted.__getitem__)
    found: list[float] = []
    for k, name in enumerate(names):
        room = 1 - gap * (len(names) - 1 - k)  # what is above needs the rest
        found.append(min(max(wanted[name], found[-1] + gap if found else 0.0), room))
    for k in range(len(found) - 2, -1, -1):
        found[k] = min(found[k], found[k + 1] - gap)
    return dict(zip(names, found, strict=True))


def _finite(columns: Columns, name: str) -> np.ndarray:
    """Iterations and values of a column where it has values."""
    points = np.asarray([columns["iteration"], columns[name]], float)
    kept: np.ndarray = points[:, np.isfinite(points[1])]
    return kept


def _finish(axis: Any, name: str, finite: np.ndarray, log: bool, baseline: float, top: float) -> None:
    """Scale, baseline, labels and grid of a panel."""
    if log:
        axis.set_yscale("log")
    if name == "loss" and np.isfinite(baseline):
        axis.axhline(baseline, color=INK, linestyle="--", linewidth=1)
        _on_line(axis, baseline, f"baseline {baseline:.3g}", above=True)
        most = top * max([baseline, *(line.get_ydata()[-1] for line in axis.lines)])
        if log and finite.max() > most:
            axis.set_ylim(finite.min() / 1.2, most)
    elif name == "orthogonality_error":
        axis.axhline(ROUNDING, color=INK, linestyle=":", linewidth=1)
        _on_line(axis, ROUNDING, "below: rounding", above=False)
        axis.set_ylim(top=max(2 * ROUNDING, 1.5 * finite.max()))
    elif not log and finite.size and finite.min() >= 0 and finite.max() <= 1:
        axis.set_ylim(-0.03, 1.03)
    if log:
        number_logarithms(axis.yaxis, *axis.get_ylim())
    axis.set_ylabel(LABELS.get(name, name), fontsize=LETTERS)
    axis.tick_params(labelsize=LETTERS)
    axis.tick_params(which="minor", labelsize=LETTERS)
    axis.grid(color="0.92")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def number_logarithms(side: Any, low: float, high: float) -> None:
    """Plain numbers on a logarithmic axis; within two decades minor ticks carry them too."""
    from matplotlib.ticker import LogLocator

    side.set_major_formatter("{x:g}")
    if 10 * low <= high < 100 * low:
        side.set_minor_locator(LogLocator(subs=(2, 5)))
    side.set_minor_formatter("{x:g}" if high < 100 * low else "")


def _on_line(axis: Any, y: float, text: str, *, above: bool) -> None:
    """What a horizontal line is, at its right end."""
    style = {"ha": "right", "va": "bottom" if above else "top", "color": INK, "fontsize": LETTERS - 1}
    place = ("axes fraction", "data")
    axis.annotate(text, (1, y), (0, 3 if above else -3), xycoords=place, textcoords="offset points", **style)
