"""`isometry.load_run`: trained layer, settings and metrics; what is not there is said."""

import csv
import sys

import numpy as np
import pytest
import torch

import isometry as iso
from cli_runs import TINY, tensors
from subprocesses import script


def test_what_is_loaded_is_what_was_trained(isometry, tmp_path):
    """Weights bit by bit, every setting of config.toml and every column; torch's generator stays as it is."""
    isometry("train", "copying", "--model", "scurnn", *TINY, "--iterations", 3, "--out", "run")
    before = torch.get_rng_state()
    run = iso.load_run("run")
    assert torch.equal(torch.get_rng_state(), before)
    saved = tensors(tmp_path / "run")
    assert all(torch.equal(value, saved[f"network.layer.{name}"]) for name, value in run.layer.state_dict().items())
    assert not run.layer.training and run.layer.hidden_size == 6
    assert run.settings["hidden"] == 6 and run.settings["layer"]["nonlinearity"] == "modrelu"
    with open(tmp_path / "run/metrics.csv", newline="") as file:
        names, *rows = csv.reader(file)
    assert list(run.metrics) == names
    assert all(np.array_equal(run.metrics[n], [float(row[k]) for row in rows]) for k, n in enumerate(names))
    assert run.network(torch.zeros(25, 2, 10)).shape == (25, 2, 9)


def test_folders_without_a_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="no config.toml"):
        iso.load_run(tmp_path)
    (tmp_path / "config.toml").write_text('model = "scornn"\n')
    with pytest.raises(RuntimeError, match="checkpoint"):
        iso.load_run(tmp_path)


@pytest.mark.parametrize("module", ["torch", "safetensors"])
def test_a_missing_package_is_an_import_error(monkeypatch, tmp_path, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module}, .*pip install {module}"):
        iso.load_run(tmp_path)


def test_importing_the_package_imports_no_command_line():
    assert "isometry.cli" not in script("import sys, isometry; isometry.load_run; print(*sys.modules)").split()
