"""What `isometry compare` computes: sizes of equal parameter count, figures of runs, bands of curves."""

import math
from pathlib import Path

import numpy as np
import pytest

from isometry.cli import plots, registry
from isometry.cli.build import make_task
from isometry.cli.compare import results, sizes, table
from isometry.cli.compare.plan import _count, plan
from isometry.cli.errors import UsageError
from isometry.cli.resolve import resolve
from isometry.cli.run_folder import RunFolder
from isometry.cli.settings import Settings


def count(**options):
    settings = resolve({"length": "5", "batch": "2"} | {k: v if k == "set" else str(v) for k, v in options.items()})
    return sizes.count(sizes.network_of(settings, make_task(settings)), settings)


def test_counts_are_those_of_the_specification():
    """Section 25: of U the entries below its diagonal, of A those above; V, bias, h0 and the readout beside them."""
    assert count(task="copying", model="scornn", hidden=190) == 190 * 189 // 2 + 10 * 190 + 190 + 9 * 191
    n, m = 40, 16
    assert count(task="adding", model="ornn", hidden=n, set=["reflections=16"]) == (
        n * m - m * (m - 1) // 2 + 2 * n + n + n + n + 1
    )
    k = 3
    assert count(task="adding", model="unitary-ornn", hidden=n, set=["reflections=3"]) == (
        2 * (n * k - k * (k - 1) // 2) + n + 2 * 2 * n + n + 2 * n + 1
    )
    # h0 is complex; V and the readout have two real numbers for each of theirs
    assert count(task="adding", model="full-capacity-urnn", hidden=n) == n * n + 2 * 2 * n + n + 2 * n + 2 * n + 1
    layers = count(task="adding", model="ornn", hidden=n, set=["num_layers=2", "bidirectional=true"])
    assert layers == 4 * (n * m - m * (m - 1) // 2 + 2 * n) + 2 * (2 * n + 2 * n * n) + 2 * n + 1


@pytest.mark.parametrize("target", [1, 2, 7, 100, 101, 5000])
def test_the_nearest_size(target):
    assert sizes.solve(target, lambda n: n) == target
    square = sizes.solve(target, lambda n: n * n)
    assert min(range(1, 100), key=lambda n: (abs(n * n - target), n)) == square


def test_a_count_that_does_not_grow():
    with pytest.raises(UsageError, match="--parameters: 128 units have 3 parameters, not 100"):
        sizes.solve(100, lambda n: min(n, 3))


def test_sizes_that_a_model_refuses():
    """Odd ones, and all but powers of two; what every size refuses is said."""

    def only(right):
        def counted(n):
            if not right(n):
                raise UsageError(f"--hidden must be otherwise, not {n}")
            return 10 * n

        return counted

    assert sizes.solve(333, only(lambda n: n % 2 == 0)) == 34
    assert sizes.solve(3000, only(lambda n: n & (n - 1) == 0)) == 256
    assert sizes.solve(1, only(lambda n: n % 2 == 0)) == 2
    with pytest.raises(UsageError, match="--hidden must be otherwise"):
        sizes.solve(100, only(lambda n: n < 0))


@pytest.mark.parametrize("model", registry.names("model"))
def test_every_model_gets_its_size(model):
    """No neighbour that the model takes comes nearer to the number of parameters."""
    given = {"task": "copying", "length": "5", "set": []}
    (run,) = plan(given, [model], [0], 2000, Path("nowhere"))
    n, errors, task = run.settings["hidden"], {}, make_task(run.settings)
    for k in (n - 2, n - 1, n, n + 1, n + 2):
        try:
            errors[k] = abs(_count(given | {"model": model}, task, k) - 2000)
        except UsageError:  # a size that the model does not take
            continue
    assert errors[n] == min(errors.values()) and run.given["hidden"] == str(n)


def result(model, seed, loss, scale=1.0, **settings):
    k = np.arange(1, len(loss) + 1)
    columns = {
        "iteration": 10.0 * k,
        "loss": loss,
        "baseline": [1.0] * len(loss),
        "seconds": scale * k,
        "orthogonality_error": [math.nan if model == "lstm" else 0.1 * seed] * len(loss),
        "recall": [*[math.nan] * (len(loss) - 1), 0.5],
    }
    known = {"task": "copying", "model": model, "seed": seed, "hidden": 6, "iterations": 1000, "length": 5}
    columns = {name: list(map(float, column)) for name, column in columns.items()}
    folder = RunFolder(Path(f"nowhere/{model}-{seed}"))
    return results.Result(folder, Settings(known | {"layer": {}, "task_options": {}} | settings), columns)


def test_figures_of_a_run():
    """Final values are medians over the last twentieth, as half the baseline's are, and where the curve ends."""
    run = result("scornn", 0, np.linspace(2, 0, 101)[:100])
    assert run.final("loss") == pytest.approx(np.linspace(2, 0, 101)[97])
    assert run.final("loss") == plots.trailing(run.columns["iteration"], run.columns["loss"])[-1]
    assert run.final("recall") == 0.5 and run.done == 1000 and run.seconds_per_step == pytest.approx(0.1)
    run.columns["recall"][-6:] = [0.4, *[math.nan] * 5]
    assert math.isnan(run.final("recall"))  # the last evaluation is older than that
    assert run.half_way == 790  # the median of 0.52, 0.5, 0.48, 0.46 and 0.44
    assert result("scornn", 0, [2.0, 0.7]).half_way == math.inf
    spike = np.ones(100)
    spike[50] = 0.4
    assert result("scornn", 0, spike).half_way == math.inf


def test_medians_of_a_table():
    """Best and median of the loss, a dash for what most seeds do not reach, the largest e(W)."""
    runs = [result("scornn", k, [1.5, loss]) for k, loss in enumerate((0.1, 0.2, 0.9))]
    (comparison,) = results.compared([*runs, result("lstm", 0, [1.5, 1.0])])
    text = table.markdown(comparison)
    assert comparison.title == "copying, length 5" and "Baseline 1." in text
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line[:3] in ("| s", "| l")
    ]
    assert rows == [
        ["scornn", "6", "–", "3", "0.1", "0.2", "0.5", "20", "100.0", "0.2"],
        ["lstm", "6", "–", "1", "1", "1", "0.5", "–", "100.0", "–"],
    ]
    assert "scornn, seed 2: 20 of 1,000 updates." in text


def test_runs_are_grouped_by_what_differs():
    runs = [
        result("scornn", 0, [1.0, 1.0], layer={"negative_ones": 1}),
        result("scornn", 0, [1.0, 1.0], layer={"negative_ones": 2}),
        result("scornn", 1, [1.0, 1.0], layer={"negative_ones": 2}, threads=7),
        result("lstm", 0, [1.0, 1.0]),
        result("lstm", 0, [1.0, 1.0], length=5000),
        result("lstm", 0, [1.0, 1.0], task="own:Task", length=None),
    ]
    found = results.compared(runs)
    assert [c.title for c in found] == ["copying, length 5", "copying, length 5,000", "Task"]
    names = [(v.name, len(v.runs)) for v in found[0].variants]
    assert names == [("scornn, negative_ones 1", 1), ("scornn, negative_ones 2", 2), ("lstm", 1)]


def test_a_seed_counts_once():
    """Of two runs of a seed the one that went further; runs of other lengths are other rows."""
    runs = [result("lstm", 0, [1.0]), result("lstm", 0, [1.0, 0.2]), result("lstm", 1, [1.0, 0.4], iterations=20)]
    runs += [result("lstm", 1, [1.0, 0.6]), result("lstm", 1, [1.0, 0.9])]
    (comparison,) = results.compared(runs)
    longer, shorter = comparison.variants
    assert (longer.name, shorter.name) == ("lstm, iterations 1,000", "lstm, iterations 20")
    assert longer.runs == [runs[1], runs[3]] and longer.again == [runs[0], runs[4]] and shorter.runs == [runs[2]]
    text = table.markdown(comparison)
    assert "| lstm, iterations 1,000 | 6 | – | 2 | 0.2 | 0.4 |" in text
    assert text.count("nowhere/lstm-0 is of seed 0 too and does not count.") == 1


def test_bands(drawn):
    """A line per model, median of its seeds, between the lowest and the highest; a short one counts where it is."""
    losses = [np.full(100, 2.0), np.full(100, 3.0), np.full(50, 7.0)]
    runs = [result("scornn", k, loss).columns for k, loss in enumerate(losses)]
    other = result("lstm", 0, np.full(100, 4.0)).columns
    axes = drawn(lambda path: plots.bands(path, {"scornn": runs, "lstm": [other]}, "Copying")).axes
    assert [axis.get_ylabel() for axis in axes] == ["loss", "recall", "e(W) in n eps"]
    line = axes[0].lines[0].get_ydata()
    assert np.allclose(line[:50], 3.0) and np.allclose(line[50:], 2.5)
    (band,) = axes[0].collections
    corners = band.get_paths()[0].vertices[:, 1]
    assert corners.min() == pytest.approx(2.0) and corners.max() == pytest.approx(7.0)
    assert [text.get_text() for text in axes[0].texts] == ["baseline 1", "scornn", "lstm"]
    assert "bands: lowest to highest seed" in axes[2].get_xlabel()


def test_the_picture_ends_where_the_table_does(drawn):
    """Spikes at the end of one run of three, which a mean would show, and the median of the seeds."""
    losses = np.random.default_rng(0).random((3, 100)) + np.array([[1], [2], [3]])
    losses[1, 96:98] = 1e6
    runs = [result("scornn", k, loss) for k, loss in enumerate(losses)]
    (comparison,) = results.compared(runs)
    text = table.markdown(comparison)
    axes = drawn(lambda path: plots.bands(path, {"scornn": [run.columns for run in runs]}, "Copying")).axes
    end = axes[0].lines[0].get_ydata()[-1]
    assert 2 < end < 3 and f"| {table.figure(end)} |" in text and "medians over the last twentieth" in text
