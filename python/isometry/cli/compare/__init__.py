"""Train several models on one task, several seeds each, and compare them; or compare runs that exist.

    isometry compare copying --models scornn,lstm --parameters 20000 --seeds 3
    isometry compare runs/*

Every other option is that of `isometry train`, for all models; --set MODEL.KEY=VALUE is for one of them, and KEY=VALUE
for those that take it. With --parameters each model gets the hidden size that comes nearest to that many trained
parameters. The runs share the cores: as many processes at once as --jobs says, each with the threads that are left to
it. --out receives a folder for each run, the table (also on standard output) and a picture of the curves, the median
over the seeds with a band from the lowest to the highest. Given again, the command continues: finished runs are kept,
interrupted ones continue from their checkpoints, new models, seeds or a larger --iterations are added. --commands
prints the commands of these runs, one a line, for a cluster's queue, and starts none; when they have ended, the same
command without it makes table and picture. --dask sends the runs to the workers of a Dask cluster with a shared folder.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from isometry.cli.device import opened
from isometry.cli.errors import INTERRUPTED, SUCCESS, Failure, UsageError, positive, require
from isometry.cli.files import made, named, write_text
from isometry.cli.lock import locked

if TYPE_CHECKING:
    from isometry.cli.compare.plan import Planned


def run(options: argparse.Namespace) -> int:
    """Carry out `isometry compare` and return the exit status."""
    from isometry.cli.resolve import EXTRAS

    require(EXTRAS, "compare")
    if "" not in sys.path:
        sys.path.append("")
    if options.models is not None:
        return _train(options)
    for name, value in vars(options).items():
        if value is not None and name not in ("command", "run", "targets", "out"):
            if not any(Path(target).exists() for target in options.targets):
                raise UsageError("--models is missing: the models to compare, separated by commas")
            raise UsageError(f"--{name.replace('_', '-')} means nothing to runs that exist")
    return _existing([Path(target) for target in options.targets], options.out)


def _train(options: argparse.Namespace) -> int:
    from isometry.cli.compare.dask_pool import LOCAL, pool_of
    from isometry.cli.compare.plan import plan
    from isometry.cli.compare.pool import share
    from isometry.cli.compare.table import CURVES, refuse_others

    if len(options.targets) != 1:
        raise UsageError(f"TASK must be one task, not {' '.join(options.targets) or 'none'}")
    models = [name.strip() for name in options.models.split(",")]
    task, seeds = options.targets[0], _seeds(options.seeds)
    parameters = None if options.parameters is None else positive("--parameters", options.parameters)
    if parameters is not None and options.hidden is not None:
        raise UsageError("--parameters and --hidden: give one of the two")
    if options.commands and options.dask is not None:
        raise UsageError("--commands and --dask: give one of the two")
    out = Path(options.out) if options.out is not None else Path("runs") / f"compare-{task.rpartition(':')[2].lower()}"
    given = {name: value for name, value in vars(options).items() if name not in ("threads", "seed")}
    planned = plan(given | {"task": task}, models, seeds, parameters, out)
    if options.commands:
        each = None if options.threads is None else share(len(planned), options.jobs, options.threads)[1]
        for words in filter(None, (run.command(each) for run in planned)):
            print(shlex.join(["isometry", *words]))
        return SUCCESS
    pool = pool_of(options.dask, len(planned), options.jobs, options.threads)
    for run in _missing(planned).values():
        if options.dask in (None, LOCAL):
            opened(run.settings)
    with made(out), locked(out, "another comparison works here"):
        refuse_others(out, [CURVES])
        runs = _missing(planned)  # another comparison may have ended meanwhile
        print(f"{out}: {len(runs)} of {len(planned)} runs to do, {pool.processes} at once, threads in each: "
              f"{pool.threads}", file=sys.stderr)  # fmt: skip
        complete = pool.run(runs)
        _report([run.folder.path for run in planned], out)
    if not complete:
        print("interrupted; the same command goes on", file=sys.stderr)
        return INTERRUPTED
    if pool.failed:
        first = next(f"{name}: {message}" for name, message in pool.failed.items())
        raise Failure(f"{len(pool.failed)} of {len(planned)} runs failed; {first}")
    return SUCCESS


def _missing(planned: Sequence[Planned]) -> dict[str, Planned]:
    """The runs that have not ended."""
    return {run.name: run for run in planned if run.command(None) is not None}


def _existing(targets: Sequence[Path], out: str | None) -> int:
    """Runs in the folders, or in folders within them."""

    if not targets:
        raise UsageError("TASK or FOLDER is missing: a task with --models, or folders of runs")
    found: list[Path] = []
    for path in targets:
        if not path.exists():
            raise UsageError(f"{path} is neither a folder of a run nor, without --models, a task to train on")
        own = [path] if (path / "config.toml").is_file() else sorted(p.parent for p in path.glob("*/config.toml"))
        if not own and len(targets) == 1:
            raise UsageError(f"{path} holds no run")
        found += own
    folder = None if out is None else Path(out)
    with nullcontext() if folder is None else made(folder):
        if not _report(list({path.resolve(): path for path in found}.values()), folder):
            raise UsageError(f"{', '.join(map(str, targets))}: no run has a row yet")
    return SUCCESS


def _report(folders: Sequence[Path], out: Path | None) -> bool:
    """Print the tables, and write them and the pictures; returns whether there is any."""
    from isometry.cli import plots
    from isometry.cli.compare import results
    from isometry.cli.compare.table import CURVES, TABLE, markdown, refuse_others

    comparisons = results.compared([found for path in folders if (found := results.load(path)) is not None])
    tables = [markdown(comparison) for comparison in comparisons]
    if tables:
        print("\n".join(tables))
    if out is not None and tables:
        pictures = [CURVES if k == 0 else f"curves-{k + 1}.png" for k in range(len(tables))]
        refuse_others(out, pictures)
        links = [f"\n![Curves of {c.title}]({name})\n" for c, name in zip(comparisons, pictures, strict=True)]
        write_text(out / TABLE, "\n".join(map(str.__add__, tables, links)))
        for comparison, name in zip(comparisons, pictures, strict=True):
            curves = {variant.name: [run.columns for run in variant.runs] for variant in comparison.variants}
            with named(out / name):
                plots.bands(out / name, curves, comparison.title)
    return bool(tables)


def _seeds(text: str | None) -> list[int]:
    """--seeds 3 is 0, 1, 2; a list of seeds has commas."""
    if text is None:
        return [0, 1, 2]
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts if part) or not parts[0]:
        raise UsageError(f"--seeds must be a number of seeds >= 1 or seeds separated by commas, not {text!r}")
    if len(parts) == 1:
        return list(range(positive("--seeds", text)))
    return list(dict.fromkeys(int(part) for part in parts if part))
