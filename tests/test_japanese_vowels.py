"""The example of sequences of different lengths, on made-up utterances, since aeon is not needed otherwise."""

import re
import runpy
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import isometry
from subprocesses import ROOT

SCRIPT = ROOT / "examples/japanese_vowels.py"


def utterances(split):
    """Nine speakers that differ in the mean of their last frames alone; what lies before is noise."""
    rng = np.random.default_rng(split == "test")
    labels = np.repeat(np.arange(1, 10), 30 if split == "train" else 5)
    frames = [rng.standard_normal((12, rng.integers(7, 30))) for _ in labels]
    for x, label in zip(frames, labels, strict=True):
        x[label - 1, -3:] += 6
    return frames, labels.astype(str)


@pytest.fixture
def run(monkeypatch, capsys, threads):  # noqa: ARG001  the budget is restored
    isometry.set_num_threads(1)
    monkeypatch.setattr(sys, "path", [*sys.path, str(SCRIPT.parent)])
    monkeypatch.setitem(sys.modules, "aeon", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "aeon.datasets", SimpleNamespace(load_japanese_vowels=utterances))

    def call(*options):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *options])
        try:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        finally:
            sys.modules.pop("japanese_vowels", None)
        return capsys.readouterr().out.splitlines()

    return call


def test_the_last_state_of_each_sequence_is_read(run, tmp_path):
    """A real layer, a complex one and torch's LSTM tell the speakers apart."""
    out = tmp_path / "picture.png"
    _, _, *rows = run("--quick", "--models", "scornn,scurnn,lstm", "--seeds", "1", "--out", str(out))
    for model, row in zip(("scornn", "scurnn", "lstm"), rows, strict=True):
        found = re.fullmatch(rf"\| {model} \| [\d,]+ \| ([\d.]+)% \(\1% to \1%\) \| [\d.]+ \|", row)
        assert found and float(found[1]) > 90, row
    assert out.stat().st_size > 10_000
