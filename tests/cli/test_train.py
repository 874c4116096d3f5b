"""`isometry train`: its folder, the same run from a seed or a config, and every task with every model."""

import math
import tomllib

import pytest
import torch

import isometry as isometry_package
from cli_runs import FILES, TINY, metrics, tensors
from isometry import _core
from isometry.cli import registry
from isometry.cli.build import make_task
from isometry.cli.resolve import resolve
from task_data import small
from tolerance import UNITARITY

MODELS = registry.names("model")
EVERY = [(task, model) for task in registry.names("task") for model in MODELS]
FEW = {"scornn", "scurnn", "lstm"}  # a real layer, a complex one, one of torch
PAIRS = [
    pair if pair[0] == "copying" or pair[1] in FEW else pytest.param(*pair, marks=pytest.mark.long) for pair in EVERY
]
# the scores of each task; those with data test their best network
SCORES = {
    "adding": [],
    "copying": ["recall"],
    "digits": ["valid_loss", "accuracy"],
    "pixels": ["valid_loss", "accuracy"],
    "permuted-pixels": ["valid_loss", "accuracy"],
    "characters": ["valid_bits"],
    "waveform": ["nmse"],
    "next-frame": ["valid_mse"],
    "permutations": ["accuracy", "accuracy_within", "accuracy_beyond"],
}
# models without a W to report
WITHOUT = {"delta-product", *(cell for cell, (*_, operator, _) in _core.CELLS.items() if not operator)}
SOFT = {"rnn", "soft-ornn", "kru"}  # models whose W is not, or only nearly, orthogonal


@pytest.mark.parametrize(("task", "model"), PAIRS)
def test_every_pair_trains(isometry, tmp_path, task, model):
    """Each task with each model writes its folder, prints its baselines, and its losses are finite."""
    options = small(task, tmp_path)
    status, out, err = isometry("train", task, "--model", model, *options, "--iterations", 2, "--out", "run")
    assert (status, err) == (0, [])
    assert {p.name for p in (tmp_path / "run").iterdir()} == FILES
    rows = metrics(tmp_path / "run")
    assert [row["iteration"] for row in rows] == ["1", "2"]
    names = ["iteration", "loss", "baseline", "orthogonality_error", *SCORES[task]]
    assert all(list(row) == names for row in rows)
    assert all(math.isfinite(float(row[name])) for row in rows for name in ("loss", "baseline", *SCORES[task]))
    error = float(rows[-1]["orthogonality_error"])
    assert math.isnan(error) if model in WITHOUT else error < 20 or model in SOFT
    assert out.splitlines()[1].startswith("run: baselines: ")
    tested = SCORES[task] != [] and task != "copying"
    assert "\nrun: loss" in out and tested == out.splitlines()[-1].startswith("run: test ")
    run = isometry_package.load_run(tmp_path / "run")
    assert (set(run.scores["test"]) != set()) == tested and run.network is not None


def test_a_row_is_the_mean_of_its_batches(isometry, tmp_path):
    """Loss and score are means since the row before, e(W) is that of the moment."""
    options = ("train", "copying", "--model", "scornn", *TINY, "--iterations", 13)
    isometry(*options, "--log-every", 1, "--out", "every")
    isometry(*options, "--log-every", 5, "--out", "fifth")
    every, fifth = metrics(tmp_path / "every"), metrics(tmp_path / "fifth")
    assert [row["iteration"] for row in fifth] == ["1", "5", "10", "13"]
    for row, first, last in zip(fifth, (1, 2, 6, 11), (1, 5, 10, 13), strict=True):
        for name in ("loss", "recall"):
            batches = [float(one[name]) for one in every[first - 1 : last]]
            assert float(row[name]) == pytest.approx(sum(batches) / len(batches), rel=1e-12)
        assert row["orthogonality_error"] == every[last - 1]["orthogonality_error"]


@pytest.mark.parametrize(
    ("task", "length", "expected"),
    [("copying", 1000, 0.020387), ("copying", 2000, 0.010294), ("adding", 400, 1 / 6), ("digits", None, math.log(10))],
)
def test_baselines(task, length, expected):
    """As the papers print them."""
    settings = resolve({"task": task, "model": "rnn", "length": length, "batch": 2})
    assert make_task(settings).baseline == pytest.approx(expected, rel=1e-4)


def test_plain_lines_without_a_terminal(isometry):
    """Output other than a terminal gets lines with loss, baseline, speed and e(W), at every tenth of the
    iterations."""
    _, out, err = isometry("train", "copying", "--model", "scornn", *TINY, "--iterations", 30, "--out", "run")
    assert err == []
    first, baselines, *lines, last = out.splitlines()
    assert first == "run: 144 parameters" and last.startswith("run: loss")
    assert baselines == "run: baselines: blanks, then guesses: 0.8318"
    assert [line.split()[1] for line in lines] == ["1/30", "10/30", "20/30", "30/30"]
    assert all(word in line for line in lines for word in ("loss", "baseline", "e(W)", "it/s"))


def test_a_seed_gives_the_same_run_again(isometry, tmp_path):
    """Losses, errors and every tensor of the checkpoint are bitwise equal; another seed gives another run."""
    for seed, out in ((3, "a"), (3, "b"), (4, "c")):
        isometry("train", "adding", "--model", "scornn", *TINY, "--iterations", 12, "--seed", seed, "--out", out)
    a, b, c = (metrics(tmp_path / name) for name in "abc")
    assert a == b and a != c
    first, second = tensors(tmp_path / "a"), tensors(tmp_path / "b")
    assert first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def test_a_config_gives_the_same_run_again(isometry, tmp_path):
    """config.toml holds everything: --config alone repeats the run, and an option overrules it."""
    options = ("--set", "negative_ones=2", "--optimizer", "adam", "--set", "marker_offset=0", "--seed", 5)
    isometry("train", "copying", "--model", "scornn", *TINY, *options, "--iterations", 4, "--out", "a")
    status, _, err = isometry("train", "--config", tmp_path / "a" / "config.toml", "--out", "b")
    assert (status, err) == (0, [])
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
    assert (tmp_path / "a" / "config.toml").read_text() == (tmp_path / "b" / "config.toml").read_text()
    isometry("train", "--config", tmp_path / "a" / "config.toml", "--hidden", 4, "--iterations", 1, "--out", "c")
    found = tomllib.loads((tmp_path / "c" / "config.toml").read_text())
    assert (found["hidden"], found["iterations"], found["seed"]) == (4, 1, 5)
    assert found["layer"]["negative_ones"] == 2 and found["optimizer"] == "adam"


def test_the_penalty_keeps_the_factors_near_unitary(refused, isometry, tmp_path):
    """It is part of what is minimised, not of the loss that is shown."""
    options = ("--model", "kru", *TINY, "--recurrent-lr", 0.05, "--iterations", 20)
    for weight in (0, 10):
        isometry("train", "copying", *options, "--penalty", weight, "--out", f"weight{weight}")
    free, held = (metrics(tmp_path / f"weight{weight}") for weight in (0, 10))
    assert free[0]["loss"] == held[0]["loss"]
    assert float(held[-1]["orthogonality_error"]) < 0.5 * float(free[-1]["orthogonality_error"])
    assert "--penalty" in refused("train", "copying", "--model", "scornn", *TINY, "--penalty", 1)


def test_folders_are_never_overwritten(refused, isometry, tmp_path):
    """Without --out the second run gets another name; --out with a run in it is an error."""
    options = ("train", "copying", "--model", "rnn", *TINY, "--iterations", 1)
    for _ in range(2):
        assert isometry(*options)[0] == 0
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {"copying-rnn-0", "copying-rnn-0-2"}
    assert "--resume" in refused(*options, "--out", "runs/copying-rnn-0")


@pytest.mark.parametrize("hidden", [2, 9])
def test_a_free_matrix_stays_unitary(refused, isometry, tmp_path, hidden):
    """W of the full-capacity uRNN by Cayley steps; a matrix of pairs (2, 2, 2) too."""
    options = ("train", "adding", "--model", "full-capacity-urnn", *TINY, "--hidden", hidden, "--recurrent-lr", 0.01)
    isometry(*options, "--iterations", 60, "--out", "run")
    errors = [float(row["orthogonality_error"]) for row in metrics(tmp_path / "run")]
    assert 0 < max(errors) < UNITARITY
    line = refused("train", "adding", "--model", "scornn", *TINY, "--recurrent-optimizer", "cayley-sgd")
    assert "--recurrent-optimizer cayley-sgd" in line


def test_a_scornn_learns_the_copying_problem(isometry, tmp_path):
    """With a short delay the loss falls well below the baseline within a few hundred updates."""
    options = ("--hidden", 48, "--length", 10, "--batch", 20, "--recurrent-lr", 1e-3, "--iterations", 400)
    isometry("train", "copying", "--model", "scornn", *options, "--out", "run")
    last = metrics(tmp_path / "run")[-1]
    assert float(last["loss"]) < 0.5 * float(last["baseline"]) and float(last["recall"]) > 0.5


def test_a_loss_that_is_not_finite_ends_the_run(isometry):
    """A rate that is far too large gives exit status 1 and one line."""
    options = ("--hidden", 6, "--length", 5, "--iterations", 500, "--lr", 1e20, "--optimizer", "sgd")
    status, _, err = isometry("train", "adding", "--model", "rnn", *options, "--clip", 0)
    assert status == 1 and len(err) == 1 and "--lr" in err[0]
