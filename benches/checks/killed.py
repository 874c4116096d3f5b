"""Trainings that are killed with SIGKILL at random moments and resumed; each must equal an uninterrupted one."""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from checks.check import Check, Ended, Figures, Outcome, kill, python, start, told

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


def train(options: argparse.Namespace, _: Figures) -> Outcome:
    """Kill trainings `--moments` times in all, at moments drawn from the life of an uninterrupted one."""
    rng, outcome, equal = random.Random(options.seed), Outcome(), 0
    killed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        parent = Path(name)
        began = time.time()
        whole = _process(parent, "whole")
        if isinstance(whole, str) or whole.failure:
            return Outcome(failures=[f"the uninterrupted training: {getattr(whole, 'failure', whole)}"])
        life, trained = (time.time() - since for since in (began, (parent / "whole/config.toml").stat().st_mtime))
        while sum(killed.values()) < options.moments and not outcome.failures:
            cut = parent / "cut"
            shutil.rmtree(cut, ignore_errors=True)
            ended: Ended | str = ""
            while isinstance(ended, str):
                done = sum(killed.values()) == options.moments or (cut / "scores.toml").exists()
                anywhere = rng.randrange(ANYWHERE) == 0
                moment = rng.uniform(0, life if anywhere else trained / 2)  # half: to kill most trainings again
                ended = _process(parent, "cut") if done else _process(parent, "cut", moment, not anywhere)
                killed.update([ended] if isinstance(ended, str) else [])
            if ended.failure:
                outcome.failures.append(f"after {dict(killed)}: {ended.failure}")
            else:
                outcome.failures += different(cut, parent / "whole")
            equal += not outcome.failures
    outcome.figures = {"killed": dict(killed), "equal": equal, "updates": UPDATES, "life": round(life, 1)}
    return outcome


def _process(parent: Path, name: str, moment: float | None = None, training: bool = False) -> Ended | str:
    """Start the training, or resume it: how it ended, or what it did when it was killed, `moment` seconds after its
    start, or after its first line, with which the training begins.
    """
    folder, began = parent / name, time.time()
    resumed = (folder / "config.toml").exists()
    words = ("train", "--resume", name) if resumed else (*TRAINING, "--iterations", UPDATES, "--out", name)
    process = start(python("-c", LAUNCH, *words), parent)
    limit = threading.Timer(SECONDS, kill, [process])
    limit.start()
    line = process.stdout.readline() if training and process.stdout else ""
    try:
        out, err = process.communicate(timeout=moment)
    except subprocess.TimeoutExpired:
        kill(process)
        return _stage(folder, line + process.communicate()[0], began)
    finally:
        limit.cancel()
    return Ended(line + out, err, told(process.returncode, err))


def _stage(folder: Path, out: str, began: float) -> str:
    """How far a process had come that was killed, by what it printed and what its folder holds."""
    if "parameters" not in out:
        return "while it started"
    if any(path.stat().st_mtime >= began for path in folder.glob("*.partial")):
        return "while it wrote a file"
    return "at the end" if (folder / "scores.toml").exists() else "while it trained"


def different(cut: Path, whole: Path) -> list[str]:
    """What differs between two finished runs: files, metrics but the seconds, every tensor of the checkpoint."""
    import torch

    import cli_runs

    found = []
    names = {path.name for path in cut.iterdir()}
    if names != cli_runs.FILES:
        found.append(f"the folder holds {', '.join(sorted(names))}")
    else:
        a, b = cli_runs.tensors(cut), cli_runs.tensors(whole)
        if a.keys() != b.keys() or not all(torch.equal(a[name], b[name]) for name in a):
            found.append("checkpoint.safetensors differs")
        if cli_runs.metrics(cut) != cli_runs.metrics(whole):
            found.append("metrics.csv differs")
        found += [
            f"{n} differs" for n in ("config.toml", "scores.toml") if (cut / n).read_text() != (whole / n).read_text()
        ]
    return found


def row(found: Figures) -> str:
    stages = ", ".join(f"{count} {stage}" for stage, count in sorted(found["killed"].items()))
    total = sum(found["killed"].values())
    ended = f"{found['equal']} trainings of {found['updates']} updates ended like the uninterrupted one"
    return f"killed {total} times ({stages}); {ended}"


CHECK = Check(
    "Killed trainings",
    "`isometry train` is killed with SIGKILL at random moments and resumed with `--resume` until it ends. It has two "
    f"layers with dropout, two optimisers and validation data, and saves a checkpoint every {EVERY} s instead of "
    "every minute, so that many kills interrupt the writing of one.",
    "A failure is a folder that does not resume, a file left over or missing, or any bit of a metric, setting, score "
    "or tensor that differs from that of an uninterrupted training.",
    train,
    row,
    ("moments", "seed"),
)
