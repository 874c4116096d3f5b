"""curves.png: what is drawn, its measure, and the names at the ends of the lines."""

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
    return lambda runs, *panels: drawn(lambda path: plots.curves(path, runs, "Copying problem, delay 5", *panels))


def names(axis):
    """What stands at the ends of an axis's lines, from the top to the bottom: text -> place."""
    found = {text.get_text(): text.xyann[1] for text in axis.texts if getattr(text, "arrow_patch", None)}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def test_panels(curves):
    """Loss with its baseline, the score, e(W) with the border of rounding; a title in words."""
    axes = curves({"a": COLUMNS}).axes
    assert [axis.get_ylabel() for axis in axes] == ["loss", "recall", "e(W) in n eps"]
    assert axes[0].get_title("left") == "Copying problem, delay 5" and plots.MEASURE in axes[2].get_xlabel()
    assert [text.get_text() for text in axes[0].texts] == ["baseline 0.5", "a"]
    assert [axis.get_yscale() for axis in axes] == ["log", "linear", "log"]
    assert axes[0].lines[2].get_ydata()[0] == 0.5 and axes[2].lines[2].get_ydata()[0] == plots.ROUNDING


def test_the_panels_that_are_asked_for(curves):
    assert [axis.get_ylabel() for axis in curves({"a": COLUMNS}, ["loss"]).axes] == ["loss"]


def test_rows_are_faint_behind_the_medians(curves):
    noisy = COLUMNS | {"loss": COLUMNS["loss"] * np.where(ROWS % 2, 1.2, 0.8)}
    rows, medians = curves({"a": noisy}).axes[0].lines[:2]
    assert rows.get_alpha() < 0.5 and medians.get_alpha() is None
    assert np.array_equal(rows.get_ydata(), noisy["loss"])
    steps = [np.abs(np.diff(np.log(line.get_ydata()))).mean() for line in (rows, medians)]
    assert steps[1] < 0.5 * steps[0]


def test_runs_of_which_one_has_no_matrix_and_one_no_score(curves):
    none = COLUMNS | {"orthogonality_error": np.full(200, np.nan)}
    bare = {name: column for name, column in none.items() if name != "recall"}
    axes = curves({"a": COLUMNS, "b": none, "c": bare}).axes
    assert set(names(axes[0])) == set("abc")
    assert len(axes) == 3 and len(curves({"b": bare}).axes) == 1


def test_a_line_shows_the_medians_of_the_twentieth_before():
    """Of the updates, not of the rows; a spike between low values is not seen."""
    loss = np.random.default_rng(0).random(300)
    found = plots.trailing(np.arange(1, 301), loss)
    assert found[0] == loss[0] and found[299] == np.median(loss[285:]) and found[150] == np.median(loss[136:151])
    spike = np.ones(100)
    spike[97] = 1e3
    assert np.all(plots.trailing(np.arange(100), spike) == 1)
    assert np.array_equal(plots.trailing([10, 1000, 1010, 2000], [4.0, 3.0, 1.0, 0.0]), [4, 3, 2, 0])
    assert plots.trailing([], []).size == 0


def test_at_most_six_runs_have_a_colour(curves):
    """Those that end lowest; the others are grey, and all have their names, in the order of their ends."""
    runs = {f"r{k}": COLUMNS | {"loss": COLUMNS["loss"] * (1 + k)} for k in range(9)}
    axis = curves(dict(reversed(runs.items()))).axes[0]
    lines = {line.get_label(): line.get_color() for line in axis.lines if line.get_label() in runs}
    assert [lines[f"r{k}"] == plots.GREY for k in range(9)] == [False] * 6 + [True] * 3
    assert len(set(lines.values())) == 7
    assert list(names(axis)) == [f"r{k}" for k in range(8, -1, -1)]


def test_names_that_do_not_fit_are_left_out(curves):
    """The grey ones first."""
    runs = {f"r{k}": COLUMNS | {"loss": COLUMNS["loss"] * (1 + k)} for k in range(40)}
    found = names(curves(runs).axes[0])
    assert 10 < len(found) < 25 and {f"r{k}" for k in range(6)} <= set(found)


def test_names_are_spread_within_the_panel():
    for wanted in ([0.5, 0.5, 0.5], [0.0, 0.01, 1.0], [0.99, 1.0, 1.2], [-1.0, 0.2, 0.21]):
        found = plots.spread(dict(enumerate(wanted)), 0.1)
        places = [found[k] for k in range(3)]
        assert np.all(np.diff(places) > 0.0999) and min(places) > -1e-9 and max(places) < 1 + 1e-9
    assert plots.spread({"a": 0.9, "b": 0.1}, 0.1) == {"a": 0.9, "b": 0.1}


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
