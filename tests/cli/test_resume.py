"""`--resume` continues bit by bit: after the last iteration, after ctrl-C, and after a kill."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from cli_runs import FILES, TINY, metrics, same_run, wait
from isometry.cli import checkpoint, plots
from subprocesses import run

CASES = [
    ("copying", "scornn"),
    ("adding", "scornn"),
    ("copying", "scurnn"),
    ("adding", "lstm"),
    ("adding", "full-capacity-urnn"),
]


@pytest.mark.parametrize(("task", "model"), CASES)
def test_a_resumed_run_equals_an_uninterrupted_one(isometry, tmp_path, task, model):
    """Metrics and checkpoint are bitwise equal; with dropout torch's generator matters too."""
    options = ("train", task, "--model", model, *TINY, "--set", "num_layers=2", "--set", "dropout=0.5")
    isometry(*options, "--iterations", 24, "--out", "whole")
    isometry(*options, "--iterations", 13, "--out", "cut")  # 13: a last row that the whole run does not have
    status, _, err = isometry("train", "--resume", "cut", "--iterations", 24)
    assert (status, err) == (0, [])
    same_run(tmp_path / "cut", tmp_path / "whole")
    rows = [row["iteration"] for row in metrics(tmp_path / "cut")]
    assert rows == ["1", "10", "20", "24"], "the mean of the row 20 begins before the cut"
    assert (tmp_path / "cut" / "config.toml").read_text() == (tmp_path / "whole" / "config.toml").read_text()


def test_resume_of_a_finished_run_says_so(isometry):
    isometry("train", "copying", "--model", "rnn", *TINY, "--iterations", 2, "--out", "run")
    status, out, err = isometry("train", "--resume", "run")
    assert (status, err) == (0, []) and "2 iterations are done" in out


def test_resume_takes_no_other_settings(refused, isometry):
    """Changes that would affect the numbers are errors, by an option or by --set; so is a folder without a run."""
    isometry("train", "copying", "--model", "scornn", *TINY, "--iterations", 2, "--out", "run")
    for options in (
        ("--hidden", 7),
        ("--lr", 0.5),
        ("--set", "negative_ones=1"),
        ("--out", "other"),
        ("--seed", 1),
        ("--model", "rnn"),
    ):
        assert "--resume" in refused("train", "--resume", "run", *options), options
    assert "nowhere" in refused("train", "--resume", "nowhere")


def test_a_run_made_on_a_gpu_goes_on_without_one(isometry, tmp_path):
    """With --backend cpu, which the folder then says; without that option the GPU is missing."""
    options = ("train", "copying", "--model", "scornn", *TINY)
    isometry(*options, "--iterations", 2, "--out", "run")
    config = tmp_path / "run/config.toml"
    config.write_text(config.read_text().replace('backend = "cpu"', 'backend = "gpu"'))
    again = ("train", "--resume", "run", "--iterations", "4")
    done = run(
        [sys.executable, "-m", "isometry", *again],
        check=False,
        cwd=tmp_path,
        ISOMETRY_GPU_ADAPTER="none-such",
    )
    assert done.returncode == 2 and "config.toml: backend gpu: " in done.stderr and len(metrics(tmp_path / "run")) == 2
    assert isometry(*again, "--backend", "cpu")[::2] == (0, [])
    assert 'backend = "cpu"' in config.read_text()
    isometry(*options, "--iterations", 4, "--out", "whole")
    assert metrics(tmp_path / "run")[-1] == metrics(tmp_path / "whole")[-1]


def test_a_damaged_checkpoint_is_a_failure(refused, isometry, tmp_path):
    isometry("train", "copying", "--model", "scornn", *TINY, "--iterations", 2, "--out", "run")
    path = tmp_path / "run" / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    assert "checkpoint" in refused("train", "--resume", "run", "--iterations", 3, status=1)
    path.unlink()
    assert "checkpoint" in refused("train", "--resume", "run", "--iterations", 3, status=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_cleanly_and_the_run_goes_on(isometry, tmp_path, number):
    """Exit status 130, the four files for whom the umask allows, and a resumed run that equals an uninterrupted one."""
    options = [str(o) for o in ("train", "copying", "--model", "scornn", *TINY, "--log-every", 1)]
    command = [sys.executable, "-m", "isometry", *options, "--iterations", "1000000", "--out", "run"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait(process, tmp_path / "run", 3)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, err) == (130, "") and out.endswith("isometry train --resume run\n")
    folder = tmp_path / "run"
    assert {p.name for p in folder.iterdir()} == FILES - {"scores.toml"}
    assert len({p.stat().st_mode for p in folder.iterdir()}) == 1
    done = int(metrics(folder)[-1]["iteration"])
    total = done + 3
    assert isometry("train", "--resume", "run", "--iterations", total)[0] == 0
    isometry(*options, "--iterations", total, "--out", "whole")
    assert metrics(folder) == metrics(tmp_path / "whole")


def test_a_killed_run_goes_on_from_its_last_checkpoint(isometry, tmp_path):
    """Rows behind the checkpoint, and half a row, are dropped and computed again."""
    options = ("train", "adding", "--model", "ornn", *TINY, "--log-every", 2)
    isometry(*options, "--iterations", 6, "--out", "early")
    isometry(*options, "--iterations", 12, "--out", "late")
    shutil.copy(tmp_path / "early" / "checkpoint.safetensors", tmp_path / "late")
    with open(tmp_path / "late" / "metrics.csv", "rb+") as file:
        file.seek(-7, os.SEEK_END)
        file.truncate()
    assert isometry("train", "--resume", "late")[0] == 0
    isometry(*options, "--iterations", 12, "--out", "whole")
    assert metrics(tmp_path / "late") == metrics(tmp_path / "whole")


@pytest.mark.parametrize("name", ["checkpoint", "curves"])
def test_a_run_killed_while_it_writes_its_first_checkpoint_or_its_curves(isometry, tmp_path, monkeypatch, name):
    """--resume begins at the start, or draws what is missing."""
    options = ("train", "copying", "--model", "scornn", *TINY, "--iterations", 2, "--out", "run")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*{"checkpoint": (checkpoint, "save"), "curves": (plots, "curves")}[name], killed)
        assert isometry(*options)[0] == 130
    assert isometry("train", "--resume", "run")[::2] == (0, [])
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES
