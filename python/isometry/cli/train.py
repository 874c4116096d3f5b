"""Train a recurrent network on a task.

Settings not given are the papers'. The run's folder receives config.toml, metrics.csv, curves.png and
checkpoint.safetensors; --resume FOLDER continues a run bit by bit, also after ctrl-C (or SIGTERM), and with a larger
--iterations beyond its end. With another --threads torch's own operations may round differently. e(W) = max|W^H W -
I| / (n eps) is the distance of W from orthogonal; below 20 it is rounding.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from isometry.cli import settings, tasks
from isometry.cli.errors import UsageError, require
from isometry.cli.run_folder import RunFolder
from isometry.cli.settings import Settings

EXTRAS = ("torch", "numpy", "tqdm", "matplotlib", "safetensors")
# Settings that --resume may change. The results of this package's kernels do not depend on the number of threads, but
# torch's own operations may then round differently.
CHANGEABLE = {"iterations", "threads"}


def run(options: argparse.Namespace) -> int:
    """Run `isometry train` and return the exit status."""
    if options.resume is not None:
        if options.out is not None or options.config is not None:
            raise UsageError("--resume goes on in its own folder with its own settings: leave --out and --config away")
        folder = RunFolder(Path(options.resume))
        if not folder.config.is_file():
            raise UsageError(f"--resume: {folder.path} holds no run (no config.toml)")
        chosen = _resumed(options, folder)
    else:
        chosen = settings.resolve(options, settings.read(options.config) if options.config is not None else None)
    require(*EXTRAS, *tasks.find(chosen.task).extras)
    return _train(chosen, options)


def _resumed(options: argparse.Namespace, folder: RunFolder) -> Settings:
    """The run's own settings, with the changeable options replaced."""
    config = settings.read(folder.config)
    empty = argparse.Namespace(assignments=[])
    before = settings.resolve(empty, config)
    after = settings.resolve(options, config)
    allowed = replace(before, iterations=after.iterations, threads=after.threads)
    if after != allowed:
        raise UsageError(
            f"--resume: only {' and '.join(sorted(CHANGEABLE))} may change; {folder.path} has its settings"
        )
    return after


def _train(chosen: Settings, options: argparse.Namespace) -> int:
    from isometry.cli import INTERRUPTED, SUCCESS, checkpoint  # these import torch
    from isometry.cli.loop import End, run_session
    from isometry.cli.session import Session, prepare

    prepare(chosen.threads)
    session = Session(chosen)
    if options.resume is not None:
        folder = RunFolder(Path(options.resume))
        checkpoint.load(folder.checkpoint, session)
        if session.iteration >= chosen.iterations:
            print(f"{folder.path}: {session.iteration} iterations are done; --iterations N goes on to N")
            return SUCCESS
        folder.rewind(session.iteration, chosen.training["log_every"])
    else:
        folder = RunFolder.create(chosen.label, options.out)
        folder.start_metrics(session.source.scores)
    folder.write_config(chosen.as_toml())
    end = run_session(session, folder)
    print(summary(folder))
    return INTERRUPTED if end is End.INTERRUPTED else SUCCESS


def summary(folder: RunFolder) -> str:
    """One line about the run from its last row."""
    rows = folder.rows()
    last = {name: column[-1] for name, column in rows.items()}
    extra = "".join(f", {name} {last[name]:.4g}" for name in list(rows)[5:])
    return (
        f"{folder.path}: loss {last['loss']:.4g} (baseline {last['baseline']:.4g}){extra} "
        f"after {last['iteration']:.0f} iterations, {last['seconds']:.1f} s"
    )
