"""curves.png: what is drawn, and its smoothing."""

import numpy as np
import pytest

from isometry.cli import plots

ROWS = np.arange(1, 201)
COLUMNS = {
    "iteration": ROWS,
    "loss": np.exp(-ROWS / 50),
    "baseline": [0.5] * 200,
    "seconds": ROWS,
    "orthogonality_error": np.full(200, 0.3),
    "recall": ROWS / 200,
}


@pytest.fixture
def curves(drawn):
    """curves(runs) -> the figure that was saved."""
    return lambda runs: drawn(lambda path: plots.curves(path, runs, "Copying problem, delay 5"))


def test_panels(curves):
    """Loss with its baseline, the score, e(W) with the border of rounding; a title in words."""
    axes = curves({"a": COLUMNS}).axes
    assert [axis.get_ylabel() for axis in axes] == ["loss", "recall", "e(W) in n eps"]
    assert axes[0].get_title() == "Copying problem, delay 5"
    assert [axis.get_yscale() for axis in axes] == ["log", "linear", "log"]
    assert axes[0].lines[2].get_ydata()[0] == 0.5 and axes[2].lines[2].get_ydata()[0] == plots.ROUNDING


def test_raw_curves_are_faint_behind_the_smoothed_ones(curves):
    noisy = COLUMNS | {"loss": COLUMNS["loss"] * np.where(ROWS % 2, 1.2, 0.8)}
    raw, smooth = curves({"a": noisy}).axes[0].lines[:2]
    assert raw.get_alpha() < 0.5 and smooth.get_alpha() is None
    assert np.array_equal(raw.get_ydata(), noisy["loss"])
    steps = [np.abs(np.diff(np.log(line.get_ydata()))).mean() for line in (raw, smooth)]
    assert steps[1] < 0.5 * steps[0]


def test_runs_of_which_one_has_no_matrix_and_one_no_score(curves):
    none = COLUMNS | {"orthogonality_error": np.full(200, np.nan)}
    bare = {name: column for name, column in none.items() if name != "recall"}
    axes = curves({"a": COLUMNS, "b": none, "c": bare}).axes
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["a", "b", "c", "baseline 0.5"]
    assert len(axes) == 3 and len(curves({"b": bare}).axes) == 1


def test_smoothing_keeps_lines_and_ends():
    """A line stays a line, a power law of a logarithmic axis too; the first and the last value stay."""
    line = np.linspace(1, 3, 300)
    assert np.allclose(plots.smooth(line, False), line) and np.allclose(plots.smooth(10**line, True), 10**line)
    noise = np.random.default_rng(0).random(300)
    found = plots.smooth(noise, False)
    assert np.allclose(found[[0, -1]], noise[[0, -1]]) and found.std() < 0.6 * noise.std()
    assert np.allclose(found[150], noise[147:154].mean())


def test_a_legend_of_many_runs_stands_beside_the_panels(curves):
    figure = curves(dict.fromkeys("abcdefgh", COLUMNS))
    assert figure.axes[0].get_legend() is None and len(figure.legends[0].get_texts()) == 9


def test_minor_ticks_carry_numbers_within_two_decades_only(curves):
    """The column e(W) = 0.3 lies on an axis that goes up to the border of rounding."""
    narrow = COLUMNS | {"loss": 1 + np.exp(-ROWS / 50)}
    axes = curves({"a": narrow}).axes
    assert axes[0].yaxis.get_minor_formatter()(1.5) == "1.5"
    assert axes[2].yaxis.get_minor_formatter()(2.0) == ""
    wide = curves({"a": COLUMNS | {"loss": 3 * np.exp(-ROWS / 70)}}).axes[0]
    low, high = wide.get_ylim()
    assert high > 10 * low
    assert [v for v in wide.yaxis.get_minorticklocs() if low < v < high] == pytest.approx([0.2, 0.5, 2])
