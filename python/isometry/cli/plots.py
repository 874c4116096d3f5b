"""curves.png: the losses of one or several runs with the baseline, and the task's scores if it has any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from isometry.cli.errors import require

Columns = Mapping[str, Sequence[float]]


def curves(path: Path, runs: Mapping[str, Columns], title: str, scores: Sequence[str] = ()) -> None:
    """Write one picture of the runs' columns (name of the run -> columns of its metrics.csv)."""
    require("matplotlib").use("Agg")
    from matplotlib.figure import Figure

    panels = 1 + bool(scores)
    figure = Figure(figsize=(8, 4.2 * panels), layout="constrained")
    losses, *rest = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
    baseline = 0.0
    for name, columns in runs.items():
        losses.plot(columns["iteration"], columns["loss"], label=name)
        baseline = columns["baseline"][0] if columns["baseline"] else baseline
    losses.axhline(baseline, color="0.4", linestyle="--", label=f"baseline {baseline:.4g}")
    values = [value for columns in runs.values() for value in columns["loss"]]
    if values and min(values) > 0:
        losses.set_yscale("log")
    losses.set(title=title, ylabel="loss")
    losses.legend()
    for panel in rest:
        for name, columns in runs.items():
            for score in scores:
                panel.plot(columns["iteration"], columns[score], label=score if len(runs) == 1 else f"{name} {score}")
        panel.set(ylim=(-0.02, 1.02))
        panel.legend()
    (rest[-1] if rest else losses).set_xlabel("iteration")
    figure.savefig(path, dpi=120)
