"""Damaged folders of runs: files cut, with wrong bytes, with other names. What comes out is a ValueError or a
RuntimeError, in the command line one line, that names the file.
"""

import pickle
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch

import isometry as iso
from cli_runs import FILES
from subprocesses import run

WORD = re.compile(rb"[A-Za-z_]{3,}")
HEADER = 8  # bytes of checkpoint.safetensors that hold the length of its header


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run with a network that was best, RMSprop's squares and Adam's steps."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    options = ("--length", 20, "--hidden", 4, "--threads", 1, "--iterations", 6, "--log-every", 2)
    command = ("train", "waveform", "--model", "ornn", *options, "--recurrent-optimizer", "rmsprop", "--out", folder)
    run([sys.executable, "-m", "isometry", *map(str, command)])
    return folder


def cuts(data, rng, most):
    for k in {0, 1, len(data) - 1, *rng.integers(0, len(data), most).tolist()}:
        yield data[:k]


def flips(data, rng, most):
    for k in rng.integers(0, len(data), most).tolist():
        yield data[:k] + bytes([data[k] ^ int(rng.integers(1, 256))]) + data[k + 1 :]


def renames(data, _, most):
    """Every word of the file, or of the checkpoint's header, turned around."""
    text = HEADER + int.from_bytes(data[:HEADER], "little") if data[-1:] != b"\n" else len(data)
    for found in list(WORD.finditer(data, 0, text))[:most]:
        yield data[: found.start()] + found[0][::-1] + data[found.end() :]


def damaged(whole, folder, rng, how, most):
    """The folder with one of its files damaged, again and again."""
    for name in sorted(FILES - {"curves.png"}):
        for data in how((whole / name).read_bytes(), rng, most):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(whole, folder)
            (folder / name).write_bytes(data)
            yield name


@pytest.mark.parametrize("how", [cuts, flips, renames], ids=lambda how: how.__name__)
def test_loading(whole, tmp_path, seed, how):
    folder, errors = tmp_path / "run", set()
    for name in damaged(whole, folder, seed, how, 200 if how is renames else 30):
        try:
            iso.load_run(folder)
        except (ValueError, RuntimeError) as error:
            assert str(folder) in str(error), repr(error)
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
def test_going_on(whole, tmp_path, isometry, seed, how):
    """The folder's name stands in the message of what ends badly."""
    folder, ends = tmp_path / "run", set()
    for _ in damaged(whole, folder, seed, how, 200 if how is renames else 2):
        status, _, err = isometry("train", "--resume", folder, "--iterations", 7)
        assert not err if status == 0 else (len(err) == 1 and str(folder) in err[0]), (status, err)
        ends.add(status)
    assert ends >= {1, 2}
