"""curves.png: loss with its baseline, scores, and the distance of W from orthogonality, of one or several runs.

Rows of metrics.csv are drawn faint, and over them their mean over a window of a fiftieth of the run: of the logarithms
where the axis is logarithmic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isometry.cli.run_folder import COLUMNS

Columns = Mapping[str, Sequence[float]]
SHARE = 50
ROUNDING = 20  # e(W) below this is rounding
LABELS = {"loss": "loss", "orthogonality_error": "e(W) in n eps"}  # on logarithmic axes
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # told apart by the colour-blind too


def curves(path: Path, runs: Mapping[str, Columns], title: str) -> None:
    """Write one picture of the runs' columns (name of the run -> columns of its metrics.csv)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scores = list(dict.fromkeys(name for columns in runs.values() for name in list(columns)[COLUMNS:]))
    errors = any(np.isfinite(columns["orthogonality_error"]).any() for columns in runs.values())
    panels = ["loss", *scores, *(["orthogonality_error"] if errors else [])]
    heights = [3.4 if name == "loss" else 1.9 for name in panels]
    figure = Figure(figsize=(8, 0.9 + sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axis, name in zip(axes, panels, strict=True):
        _panel(axis, name, {run: columns for run, columns in runs.items() if name in columns}, LABELS.get(name, name))
    axes[0].set_title(title)
    if len(runs) == 1:
        axes[0].lines[1].set_label("smoothed")
    axes[0].legend(frameon=False)
    axes[-1].set_xlabel("iteration")
    axes[-1].xaxis.set_major_formatter("{x:,.0f}")
    figure.align_ylabels()
    figure.savefig(path, dpi=130)


def _panel(axis: Any, name: str, runs: Mapping[str, Columns], label: str) -> None:
    everything = np.concatenate([np.asarray(columns[name], float) for columns in runs.values()])
    finite = everything[np.isfinite(everything)]
    log = name in LABELS and finite.size > 0 and finite.min() > 0
    for colour, (run, columns) in zip(COLOURS * len(runs), runs.items(), strict=False):
        x, y = np.asarray([columns["iteration"], columns[name]], float)
        x, y = x[np.isfinite(y)], y[np.isfinite(y)]
        axis.plot(x, y, color=colour, alpha=0.3, linewidth=0.8)
        axis.plot(x, smooth(y, log), color=colour, linewidth=1.8, label=run)
    if log:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
    baseline = next((c["baseline"][0] for c in runs.values() if c["baseline"]), np.nan)
    if name == "loss" and np.isfinite(baseline):
        axis.axhline(baseline, color="0.35", linestyle="--", linewidth=1, label=f"baseline {baseline:.3g}")
    elif name == "orthogonality_error":
        axis.axhline(ROUNDING, color="0.35", linestyle=":", linewidth=1)
        axis.annotate("below: rounding", (1, ROUNDING), (0, -3), xycoords=("axes fraction", "data"),
                      textcoords="offset points", ha="right", va="top", color="0.35", fontsize=8)  # fmt: skip
        axis.set_ylim(top=max(2 * ROUNDING, 1.5 * finite.max()))
    elif not log and finite.size and finite.min() >= 0 and finite.max() <= 1:
        axis.set_ylim(-0.03, 1.03)
    if log:  # within a decade the minor ticks carry the numbers
        low, high = axis.get_ylim()
        axis.yaxis.set_minor_formatter("{x:g}" if high < 10 * low else "")
    axis.set_ylabel(label)
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
