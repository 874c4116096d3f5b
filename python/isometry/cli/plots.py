"""curves.png: loss with its baseline, scores, and the distance of W from orthogonality, of one or several runs.

Rows of metrics.csv are drawn faint, and over them their mean over a window of a fiftieth of the run, geometric where
the axis is logarithmic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isometry.cli.run_folder import COLUMNS

Columns = Mapping[str, Sequence[float]]
SHARE = 50
ROUNDING = 20  # e(W) below this is rounding
LABELS = {"loss": "loss", "orthogonality_error": "e(W) in n eps"}  # on logarithmic axes
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # told apart by the colour-blind too
STYLES = ("-", "--", ":")  # of more lines than colours


def curves(path: Path, runs: Mapping[str, Columns], title: str) -> None:
    """Write one picture of the runs' columns (name of the run -> columns of its metrics.csv)."""

    def draw(axis: Any, name: str, log: bool) -> None:
        for k, (run, columns) in enumerate(runs.items()):
            if name in columns:
                x, y = _finite(columns, name)
                axis.plot(x, y, color=COLOURS[k % len(COLOURS)], alpha=0.3, linewidth=0.8)
                axis.plot(x, smooth(y, log), **_line(k), label=run)
        if name == "loss" and len(runs) == 1:
            axis.lines[1].set_label("smoothed")

    _figure(path, list(runs.values()), title, draw)


def bands(path: Path, groups: Mapping[str, Sequence[Columns]], title: str) -> None:
    """Write one picture of several groups of runs, each a line, the median of its smoothed runs, and a band from the
    lowest to the highest of them.
    """

    def draw(axis: Any, name: str, log: bool) -> None:
        for k, (group, runs) in enumerate(groups.items()):
            found = [_finite(columns, name) for columns in runs if name in columns]
            own = [(x, smooth(y, log)) for x, y in found if x.size]
            if not own:
                continue
            x = max((x for x, _ in own), key=lambda x: float(x[-1]))  # of the run that went furthest
            values = np.stack([np.interp(x, at, y, left=np.nan, right=np.nan) for at, y in own])
            axis.plot(x, np.nanmedian(values, 0), **_line(k), label=group)
            if len(own) > 1:
                low, high = np.nanmin(values, 0), np.nanmax(values, 0)
                axis.fill_between(x, low, high, color=COLOURS[k % len(COLOURS)], alpha=0.18, linewidth=0)

    _figure(path, [columns for runs in groups.values() for columns in runs], title, draw)


def _line(k: int) -> dict[str, Any]:
    """Colour and style of the k-th line."""
    style = STYLES[k // len(COLOURS) % len(STYLES)]
    return {"color": COLOURS[k % len(COLOURS)], "linestyle": style, "linewidth": 1.8}


def _finite(columns: Columns, name: str) -> np.ndarray:
    """Iterations and values of a column where it has values."""
    points = np.asarray([columns["iteration"], columns[name]], float)
    kept: np.ndarray = points[:, np.isfinite(points[1])]
    return kept


def _figure(path: Path, runs: Sequence[Columns], title: str, draw: Callable[[Any, str, bool], None]) -> None:
    """A panel for the loss, each score and e(W), filled by `draw(axis, name, log)`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scores = list(dict.fromkeys(name for columns in runs for name in list(columns)[COLUMNS:]))
    errors = any(np.isfinite(columns["orthogonality_error"]).any() for columns in runs)
    panels = ["loss", *scores, *(["orthogonality_error"] if errors else [])]
    heights = [3.4 if name == "loss" else 1.9 for name in panels]
    figure = Figure(figsize=(8, 0.9 + sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axis, name in zip(axes, panels, strict=True):
        own = [columns for columns in runs if name in columns]
        values = np.concatenate([_finite(columns, name)[1] for columns in own])
        log = name in LABELS and values.size > 0 and bool(values.min() > 0)
        draw(axis, name, log)
        _finish(axis, name, values, log, next((c["baseline"][0] for c in own if c["baseline"]), np.nan))
    axes[0].set_title(title)
    handles, labels = axes[0].get_legend_handles_labels()
    if len(handles) <= len(COLOURS) + 1:
        axes[0].legend(frameon=False)
    else:  # too many to fit between the lines
        figure.set_figwidth(10)
        figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)
    axes[-1].set_xlabel("iteration")
    axes[-1].xaxis.set_major_formatter("{x:,.0f}")
    figure.align_ylabels()
    figure.savefig(path, dpi=130)


def _finish(axis: Any, name: str, finite: np.ndarray, log: bool, baseline: float) -> None:
    """Scale, baseline, labels and grid of a panel."""
    from matplotlib.ticker import LogLocator

    if log:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
    if name == "loss" and np.isfinite(baseline):
        axis.axhline(baseline, color="0.35", linestyle="--", linewidth=1, label=f"baseline {baseline:.3g}")
    elif name == "orthogonality_error":
        axis.axhline(ROUNDING, color="0.35", linestyle=":", linewidth=1)
        axis.annotate("below: rounding", (1, ROUNDING), (0, -3), xycoords=("axes fraction", "data"),
                      textcoords="offset points", ha="right", va="top", color="0.35", fontsize=8)  # fmt: skip
        axis.set_ylim(top=max(2 * ROUNDING, 1.5 * finite.max()))
    elif not log and finite.size and finite.min() >= 0 and finite.max() <= 1:
        axis.set_ylim(-0.03, 1.03)
    if log:  # within two decades minor ticks carry numbers too
        low, high = axis.get_ylim()
        if 10 * low <= high < 100 * low:
            axis.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axis.yaxis.set_minor_formatter("{x:g}" if high < 100 * low else "")
    axis.set_ylabel(LABELS.get(name, name))
    axis.grid(color="0.92")
    axis.spines[["top", "right"]].set_visible(False)


def smooth(values: np.ndarray, log: bool) -> np.ndarray:
    """Means over a window around each value, shorter towards the ends; geometric ones for `log`."""
    reach = -(-len(values) // (2 * SHARE))
    sums = np.cumsum(np.concatenate(([0.0], np.log(values) if log else values)))
    k = np.arange(len(values))
    side = np.minimum(reach, np.minimum(k, len(values) - 1 - k))
    means = (sums[k + side + 1] - sums[k - side]) / (2 * side + 1)
    return np.exp(means) if log else means
