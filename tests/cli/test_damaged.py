"""Damaged folders of runs: files cut, with wrong bytes, with other names. What comes out is a ValueError or a
RuntimeError, in the command line one line, that names the file.
"""

import pickle
import shutil
from pathlib import Path

import pytest
import torch

import isometry as iso
from damage import cuts, damaged, flips, load_run, renames, resume, trained


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("whole") / "run")


@pytest.mark.parametrize("how", [cuts, flips, renames], ids=lambda how: how.__name__)
def test_loading(whole, tmp_path, seed, how):
    folder, errors = tmp_path / "run", set()
    for name in damaged(whole, folder, seed, how, 200 if how is renames else 30):
        if load_run(folder):
            errors.add(name)
    assert errors >= {"config.toml", "checkpoint.safetensors"}  # a metrics.csv that is cut has fewer rows


class Malicious:
    """Creates a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("write", [pickle.dump, torch.save], ids=["pickle", "torch.save"])
def test_a_checkpoint_runs_no_code(whole, tmp_path, isometry, write):
    """Another format under the name of the checkpoint is refused, not unpickled."""
    folder, touched = tmp_path / "run", tmp_path / "touched"
    shutil.copytree(whole, folder)
    with open(folder / "checkpoint.safetensors", "wb") as file:
        write(Malicious(touched), file)
    with pytest.raises(RuntimeError, match="not a checkpoint of isometry"):
        iso.load_run(folder)
    assert isometry("train", "--resume", folder, "--iterations", 7)[0] == 1
    assert not touched.exists()
    with open(folder / "checkpoint.safetensors", "rb") as file:
        pickle.load(file) if write is pickle.dump else torch.load(file, weights_only=False)
    assert touched.exists(), "the file has no code to run"


@pytest.mark.parametrize("how", [cuts, renames], ids=lambda how: how.__name__)
def test_going_on(whole, tmp_path, seed, how):
    """The folder's name stands in the message of what ends badly."""
    folder = tmp_path / "run"
    assert {resume(folder) for _ in damaged(whole, folder, seed, how, 200 if how is renames else 2)} >= {1, 2}
