"""The network that is best on the validation data is the one that is kept and tested."""

import math
import sys
import tomllib
from types import SimpleNamespace

import pytest
import torch

import isometry as iso
from cli_runs import metrics, same_run, tensors

DIGITS = ("train", "digits", "--model", "scornn", "--hidden", 5, "--batch", 4, "--threads", 1, "--lr", 0.1)


class Shifted:
    """The readout must be near 1 when training, but near 0.5 when validating: the best network is in between."""

    inputs, outputs, last_only, best = 1, 1, True, ("gap", min)
    aim = 0.5

    def draw(self, rng):
        return rng.random((3, 4, 1)), torch.ones(4, 1)

    def loss(self, values, target):
        return (values - target).square().mean()

    def evaluate(self, network):
        return {"gap": (network(torch.full((3, 2, 1), 0.5)) - self.aim).abs().mean()}

    def test(self, network):
        return {"output": network(torch.full((3, 2, 1), 0.5)).mean()}


class Towards(Shifted):
    """Training never reaches what validates: the last network is the best."""

    aim = 3.0


def trained(isometry, monkeypatch, task, *options):
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Shifted=Shifted, Towards=Towards))
    given = ("--task", f"mine:{task.__name__}", "--model", "rnn", "--hidden", 4, "--lr", 0.003)
    status, out, err = isometry("train", *given, "--threads", 1, "--out", "run", *options)
    assert (status, err) == (0, [])
    return out


@pytest.mark.parametrize(("task", "iterations"), [(Shifted, 200), (Shifted, 203), (Towards, 30), (Towards, 27)])
def test_the_best_network_is_tested(isometry, monkeypatch, tmp_path, task, iterations):
    """The row with the smallest gap, whose network `load_run` gives back; also where it is an odd last one."""
    out = trained(isometry, monkeypatch, task, "--iterations", iterations)
    rows = metrics(tmp_path / "run")
    best = min(rows, key=lambda row: float(row["gap"]))
    scores = tomllib.loads((tmp_path / "run" / "scores.toml").read_text())
    assert scores["iteration"] == int(best["iteration"])
    assert (scores["iteration"] == iterations) == (task is Towards)
    with torch.no_grad():
        network = iso.load_run("run").network
        assert task().evaluate(network)["gap"] == pytest.approx(float(best["gap"]), rel=1e-6)
        assert task().test(network)["output"] == pytest.approx(scores["test"]["output"], rel=1e-6)
    assert out.splitlines()[-1].endswith(f"of the network after {best['iteration']} iterations")
    assert iso.load_run("run").scores == scores


def test_rows_between_two_evaluations(isometry, monkeypatch, tmp_path):
    """NaN there; rows that pass a multiple have a value, and the last network is looked at for the test."""
    trained(isometry, monkeypatch, Towards, "--iterations", 20, "--evaluate-every", 7, "--log-every", 5)
    seen = {row["iteration"]: not math.isnan(float(row["gap"])) for row in metrics(tmp_path / "run")}
    assert seen == {"1": True, "5": False, "10": True, "15": True, "20": False}
    assert iso.load_run("run").scores["iteration"] == 20


@pytest.mark.parametrize("every", [10, 20])
def test_a_resumed_run_keeps_the_best_of_before(isometry, tmp_path, every):
    """Checkpoint, metrics and scores are those of an uninterrupted run; the best row is one before the cut."""
    options = (*DIGITS, "--evaluate-every", every)
    isometry(*options, "--iterations", 60, "--out", "whole")
    isometry(*options, "--iterations", 37, "--out", "cut")
    assert isometry("train", "--resume", "cut", "--iterations", 60)[0] == 0
    same_run(tmp_path / "cut", tmp_path / "whole")
    assert (tmp_path / "cut/scores.toml").read_text() == (tmp_path / "whole/scores.toml").read_text()
    assert any(name.startswith("best.") for name in tensors(tmp_path / "cut"))


def test_scores_of_an_end_that_was_not_the_last(isometry, tmp_path):
    """What goes on has no scores until it ends again."""
    isometry(*DIGITS, "--iterations", 3, "--out", "run")
    first = (tmp_path / "run/scores.toml").read_text()
    isometry("train", "--resume", "run", "--iterations", 30)
    assert (tmp_path / "run/scores.toml").read_text() != first
    assert set(iso.load_run("run").scores) == {"iteration", "test", "baselines"}
