"""Train a recurrent network on a task.

Settings not given are the papers' for this task and model: those of tasks are listed at the end, and config.toml has
all of a run. The defaults of the options hold where no paper says more.
The run's folder receives config.toml, metrics.csv, curves.png and checkpoint.safetensors, and at the end scores.toml:
for a task with validation data the network that did best on them is kept and tested. --resume FOLDER continues from
there bit for bit, also after ctrl-C (or SIGTERM); a larger --iterations extends a finished run. With another --threads
torch's own operations may round differently, with another --backend or --device every result. torchrun --nproc-per-node
N -m isometry train ... trains in N processes that share every batch. e(W) = max|W^H W - I| / (n eps) measures how far W
is from orthogonal; values below 20 are rounding.

Examples:

    isometry train copying --model scornn --length 200 --iterations 1000
    isometry train digits --model rum --set nonlinearity=tanh --hidden 64
    isometry train characters --model gru --data book.txt --out runs/book
    isometry train --resume runs/book --iterations 4000
"""

import argparse
import shlex
import sys
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from isometry import use_backend
from isometry.cli.data import digest
from isometry.cli.device import chosen, left_to_cpu, opened
from isometry.cli.errors import INTERRUPTED, SUCCESS, Caution, UsageError
from isometry.cli.files import write_text
from isometry.cli.progress import figures
from isometry.cli.registry import find
from isometry.cli.resolve import resolve
from isometry.cli.run_folder import RunFolder
from isometry.cli.settings import DIGEST, Settings, option, spelled, stored

# Settings that --resume may change. The package's kernels compute the same with any number of threads, but torch's own
# operations may round differently; another backend or device rounds everything differently. --data may name another
# place of the same data.
CHANGEABLE = ("iterations", "threads", "backend", "device", "data")


def run(options: argparse.Namespace) -> int:
    """Carry out `isometry train` and return the exit status."""
    if "" not in sys.path:
        sys.path.append("")  # the user's classes are in the working folder, which only `python -m` searches by itself
    if options.task is None:
        options.task = options.task_option
    elif options.task_option is not None:
        raise UsageError("--task: the task stands in TASK already; give one of the two")
    if options.resume is None:
        settings = resolve(vars(options), options.config)
        settings[DIGEST] = digest(settings["data"], find("task", settings["task"]).files)
        return _train(settings, None, options.out)
    if options.out is not None or options.config is not None:
        raise UsageError("--resume goes on in its own folder with its own settings: leave --out and --config away")
    folder = RunFolder(Path(options.resume))
    if not folder.config.is_file():
        raise UsageError(f"--resume: {folder.path} holds no run (no config.toml)")
    kept = stored(folder.config)
    place = [text for text in options.set or () if text.partition("=")[0].strip() == "data"]
    before = resolve({"data": options.data, "set": place}, folder.config)
    # another task or model first: the keywords in config.toml need not be its own
    same = all(vars(options)[kind] in (None, before[kind]) for kind in ("task", "model"))
    after = resolve(vars(options), folder.config) if same else before
    same = same and (after["data"] is None) == (kept.get("data") is None)
    if not same or any(before[name] != after[name] for name in before.keys() - CHANGEABLE):
        raise UsageError(
            f"--resume goes on with the settings of {folder.path}: only {', '.join(map(option, CHANGEABLE))} may change"
        )
    known_again(after, kept, folder.path)
    return _train(after, folder, None)


def known_again(settings: Settings, kept: Settings, folder: Path) -> None:
    """A UsageError unless the data are those with which the run began; a warning where it has no digest of them, as
    where an earlier version began it, or where they come from a pipe.
    """
    if settings["data"] is None:
        return
    said = f"{settings.option('data')} {settings['data']}"
    settings[DIGEST] = digest(settings["data"], find("task", settings["task"]).files)
    if kept.get(DIGEST) is None or settings[DIGEST] is None:
        warnings.warn(Caution(f"{said}: taken as the data of {folder}, which has no digest of them"), stacklevel=2)
    elif settings[DIGEST] != kept[DIGEST]:
        raise UsageError(f"{said}: not the data with which {folder} began; --data PATH names their place")


def _train(settings: Settings, folder: RunFolder | None, out: str | None) -> int:
    from isometry.cli import checkpoint, distributed  # these import torch
    from isometry.cli.loop import End, draw, run_session
    from isometry.cli.session import Session, prepared

    opened(settings)
    device = chosen(settings)
    with (
        distributed.joined() as group,
        prepared(settings["threads"]),
        use_backend(settings["backend"]),
        ExitStack() as held,
    ):
        if folder is not None and group.first:
            held.enter_context(folder.locked())
        if group.size > 1 and device.type != "cpu":
            raise UsageError(f"--device {device}: the processes of torchrun share a batch on the CPU only")
        session = Session(settings, group, device)
        if folder is not None and folder.begun:
            folder.refuse_scores(session.columns, settings.where("task"))
            checkpoint.load(folder.checkpoint, session)
        if not group.first:
            return INTERRUPTED if run_session(session, None) is End.INTERRUPTED else SUCCESS
        if folder is None:
            folder = held.enter_context(RunFolder.create(settings.label, out))
        elif session.iteration >= settings["iterations"]:
            print(f"{folder.path}: {session.iteration} iterations are done; --iterations N goes on to N")
            draw(session, folder)  # a kill after the last checkpoint may have come before the curves
            return SUCCESS
        else:
            folder.rewind(session.iteration, settings["log_every"])
        write_text(folder.config, settings.as_toml())
        print(f"{folder.path}: {session.parameters:,} parameters", flush=True)
        notes = [left_to_cpu(session.network.layer) if settings["backend"] == "gpu" else ""]
        notes += [f"baselines: {listed(session.baselines, ': ')}" if session.baselines else "", session.note]
        for note in filter(None, notes):
            print(f"{folder.path}: {note}", flush=True)
        end = run_session(session, folder)
        print(summary(folder))
        if end is End.INTERRUPTED:
            words = shlex.join(["isometry", "train", *spelled("resume", folder.path)])
            print(f"interrupted; this goes on: {words}", flush=True)
        return INTERRUPTED if end is End.INTERRUPTED else SUCCESS


def summary(folder: RunFolder) -> str:
    """A line about the run, from its last row, and one about its test."""
    last = {name: column[-1] for name, column in folder.columns().items()}
    text = f"{folder.path}: {figures(last)} after {last['iteration']:.0f} iterations, {last['seconds']:.1f} s"
    text += f"; curves: {folder.curves}"
    scores = folder.read_scores()
    if scores.get("test"):
        text += f"\n{folder.path}: test {listed(scores['test'])}, of the network after {scores['iteration']} iterations"
    return text


def listed(values: Mapping[str, float], between: str = " ") -> str:
    """Names and values on a line."""
    return ", ".join(f"{name}{between}{value:.4g}" for name, value in values.items())
