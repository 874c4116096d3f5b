"""Trainings that are killed with SIGKILL at random moments and resumed; each must equal an uninterrupted one."""

import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
import torch

import cli_runs
from subprocesses import environment

pytestmark = [pytest.mark.long, pytest.mark.timeout(8 * 3600)]

#: With dropout torch's generator is part of the state, with a task that has validation data the best network too.
TRAINING = (
    *("train", "waveform", "--model", "ornn", "--length", "20", "--hidden", "8", "--threads", "1", "--seed", "3"),
    *("--recurrent-optimizer", "rmsprop", "--set", "num_layers=2", "--set", "dropout=0.5", "--log-every", "20"),
)
UPDATES, EVERY, SECONDS = 600, 0.01, 300  # of a training; seconds between checkpoints; time limit of a process
ANYWHERE = 5  # one moment in so many may fall into the imports, which take longer than the training
LAUNCH = f"""
import sys
from isometry.cli import loop, main
loop.CHECKPOINT_SECONDS = {EVERY}
sys.exit(main(sys.argv[1:]))
"""


def test_killed_trainings_end_like_an_uninterrupted_one(tmp_path, sizes, figures):
    """Kill trainings `moments` times in all, at moments drawn from the life of an uninterrupted one."""
    rng, killed, cut = random.Random(sizes.seed), Counter(), tmp_path / "cut"
    began = time.time()
    assert trained(tmp_path, "whole") is None
    life, training = (time.time() - since for since in (began, (tmp_path / "whole/config.toml").stat().st_mtime))
    figures.update(killed=killed, equal=0, updates=UPDATES, life=round(life, 1))
    while killed.total() < sizes.moments:
        shutil.rmtree(cut, ignore_errors=True)
        stage = ""
        while stage is not None:
            done = killed.total() == sizes.moments or (cut / "scores.toml").exists()
            anywhere = rng.randrange(ANYWHERE) == 0
            moment = rng.uniform(0, life if anywhere else training / 2)  # half: to kill most trainings again
            stage = trained(tmp_path, "cut") if done else trained(tmp_path, "cut", moment, not anywhere)
            killed.update([] if stage is None else [stage])
        same(cut, tmp_path / "whole")
        figures["equal"] += 1


def trained(parent, name, moment=None, training=False):
    """Start the training, or resume it, to its end, or kill it `moment` seconds after its start, or after its first
    line, with which the training begins; what it did then.
    """
    folder, began = parent / name, time.time()
    resumed = (folder / "config.toml").exists()
    words = ("train", "--resume", name) if resumed else (*TRAINING, "--iterations", str(UPDATES), "--out", name)
    command = [sys.executable, "-c", LAUNCH, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=parent, env=environment(), stdout=pipe, stderr=pipe, text=True) as process:
        limit = threading.Timer(SECONDS, process.kill)
        limit.start()
        line = process.stdout.readline() if training else ""
        try:
            _, err = process.communicate(timeout=moment)
        except subprocess.TimeoutExpired:
            process.kill()
            return stage_of(folder, line + process.communicate()[0], began)
        finally:
            limit.cancel()
    assert process.returncode == 0, f"status {process.returncode}: {err}"
    return None


def stage_of(folder, out, began):
    """How far a process had come that was killed, by what it printed and what its folder holds."""
    if "parameters" not in out:
        return "while it started"
    if any(path.stat().st_mtime >= began for path in folder.glob("*.partial")):
        return "while it wrote a file"
    return "at the end" if (folder / "scores.toml").exists() else "while it trained"


def same(cut, whole):
    """Of two finished runs the files, metrics but the seconds, and every tensor of the checkpoint."""
    assert {path.name for path in cut.iterdir()} == cli_runs.FILES
    a, b = cli_runs.tensors(cut), cli_runs.tensors(whole)
    assert a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
    assert cli_runs.metrics(cut) == cli_runs.metrics(whole)
    for name in ("config.toml", "scores.toml"):
        assert (cut / name).read_text() == (whole / name).read_text()
