"""The comparison as Markdown, a row for each model, and the folder that receives it."""

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from isometry._rules.check import article
from isometry.cli.compare.results import Comparison, Variant
from isometry.cli.errors import Failure, UsageError
from isometry.cli.files import text_of

TABLE, PARTIAL, CURVES = "table.md", "table.partial", "curves.png"  # the second one is that of files.replacing
FIRST = ["", "n", "parameters", "seeds", "loss, best", "median"]  # names of columns
NOTE = (
    "Loss and scores at the end are medians over the last twentieth of the updates, as at the ends of the curves; test "
    "scores are those of the network that was best on validation data; best and median over the seeds. Half the "
    "baseline: the first update at which the curve is below it. e(W), the distance of W from an orthogonal matrix: the "
    "largest of the seeds at the end, in n eps; below 20 is rounding."
)


def markdown(comparison: Comparison, *, note: bool = True) -> str:
    """A heading, the table, the runs that have not ended or do not count, and with `note` an explanation of the
    columns."""
    scores, tests = comparison.scores, comparison.tests
    names = FIRST + [f"{name}, median" for name in scores] + [f"test {name}, median" for name in tests]
    names += ["updates to half the baseline", "ms per update", "e(W)"]
    lines = [f"| {' | '.join(names)} |", "|---" + "|---:" * (len(names) - 1) + "|"]
    lines += [f"| {' | '.join(_row(variant, scores, tests))} |" for variant in comparison.variants]
    notes = [*_remarks(comparison), *([NOTE] if note else [])]
    baseline = comparison.variants[0].runs[0].columns["baseline"][0]
    if math.isfinite(baseline):
        notes.insert(0, f"Baseline {baseline:.3g}.")
    return "\n".join([f"## {comparison.title[:1].upper()}{comparison.title[1:]}", "", *lines, "", " ".join(notes), ""])


def refuse_others(folder: Path, pictures: Sequence[str]) -> None:
    """A UsageError if the table or a picture would replace a file that no comparison has written: a table has our
    columns, and names its pictures.
    """
    texts = {}
    for name in (TABLE, PARTIAL):
        with suppress(Failure):
            texts[name] = text_of(folder / name)
    own = [name for name, text in texts.items() if f"| {' | '.join(FIRST)} |" in text]
    own += [name for name in pictures if TABLE in own and f"]({name})" in texts[TABLE]]
    for name in (TABLE, PARTIAL, *pictures):
        if os.path.lexists(folder / name) and name not in own:
            raise UsageError(
                f"--out {folder} holds {article(name)} of something else: give another folder, or move it away"
            )


def _row(variant: Variant, scores: Sequence[str], tests: Sequence[str]) -> list[str]:
    runs = variant.runs
    losses = [run.final("loss") for run in runs]
    errors = [e for run in runs if not math.isnan(e := run.columns["orthogonality_error"][-1])]
    return [
        variant.name,
        f"{variant.hidden:,}",
        figure(runs[0].parameters, digits=0),
        str(len(runs)),
        figure(min((loss for loss in losses if not math.isnan(loss)), default=math.nan)),
        figure(variant.median(losses)),
        *(figure(variant.median(run.final(name) for run in runs if name in run.columns)) for name in scores),
        *(figure(variant.median(run.tests[name] for run in runs if name in run.tests)) for name in tests),
        figure(variant.median(run.half_way for run in runs), digits=0),
        figure(1e3 * variant.median(run.seconds_per_step for run in runs), digits=1),
        figure(max(errors, default=math.nan)),
    ]


def _remarks(comparison: Comparison) -> list[str]:
    """The runs that have not ended, and those whose seed another run has too."""
    again = [
        f"{variant.name}: {run.folder.path} is of seed {run.settings['seed']} too and does not count."
        for variant in comparison.variants
        for run in variant.again
    ]
    return again + [
        f"{variant.name}, seed {run.settings['seed']}: {run.done:,} of {run.settings['iterations']:,} updates."
        for variant in comparison.variants
        for run in variant.runs
        if run.done < run.settings["iterations"]
    ]


def figure(value: float, digits: int | None = None) -> str:
    """Three significant digits, or a given number of decimals; a dash for a missing value or one that was not
    reached."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.3g}" if digits is None else f"{value:,.{digits}f}"
