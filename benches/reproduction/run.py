"""Trains every system on every task of the papers at desktop size, and writes what came out: docs/reproduction.md.

    python benches/reproduction run                            all that has no result, some minutes a system
    python benches/reproduction run --tier settle --budget 60   an hour of the longer runs; the same command goes on
    python benches/reproduction run --dask scheduler.json       on the workers of a cluster that shares this folder
    python benches/reproduction report                         the pages from the results, nothing is trained

cells.toml lists the runs and the claims of the papers; systems and tasks are those of the command line. Runs are
those of `isometry compare`, in runs/reproduction-TIER/CELL/MODEL-SEED: what was interrupted (ctrl-C, or the end of the
budget) goes on from its checkpoint. What has ended is added to results/CELL.json, and what is there is not run again:
to repeat a run, remove it from that file. The first seed of all comes first. The table with real data is that of
`python examples/japanese_vowels.py > benches/reproduction/results/japanese-vowels.md`.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from isometry.cli.compare.dask_pool import pool_of
from isometry.cli.compare.plan import Planned, plan
from isometry.cli.compare.results import load
from isometry.cli.errors import Failure, UsageError
from reproduction import report, results
from reproduction.cell import CELLS, DATA, FACTS, Job, jobs, stem

ROOT = Path(__file__).resolve().parents[2]
Runs = tuple[Job, list[Planned]]


def planned(wanted: Sequence[Job], seeds: int | None, out: Path, kept: Path) -> list[Runs]:
    """The runs that have no result; hidden sizes that were solved for are remembered in sizes.json."""
    file = out / "sizes.json"
    sizes = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    found = []
    for job in wanted:
        if not (missing := sorted(set(range(seeds or job.seeds)) - results.seeds(job, kept))):
            continue
        key = f"{job.cell}, {job.model}"
        target = job.size[1] if job.size[0] == "parameters" and key not in sizes else None
        given = job.given(sizes.get(key) if job.size[0] == "parameters" else None)
        runs = plan(given, [job.model], missing, target, out / stem(job.cell))
        found.append((job, runs))
        if job.size[0] == "parameters":
            sizes[key] = runs[0].settings["hidden"]
            out.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(sizes, indent=1) + "\n", encoding="utf-8")
    return found


def train(runs: Sequence[Runs], options: argparse.Namespace) -> bool:
    """Run what is left, the first seed of all first, within the budget; whether nothing was interrupted or failed."""
    left = {}
    for seed in sorted({run.settings["seed"] for _, own in runs for run in own}):
        for job, own in runs:
            for run in own:
                if run.settings["seed"] == seed and run.command(None) is not None:
                    left[f"{stem(job.cell)}/{run.name}"] = run
    seconds = None if options.budget is None else 60 * options.budget
    pool = pool_of(options.dask, sum(len(own) for _, own in runs), options.jobs, None, seconds)
    print(f"{len(left)} runs to do, {pool.processes} at once", file=sys.stderr)
    complete = pool.run(left)
    for name, message in pool.failed.items():
        print(f"{name} failed: {message}", file=sys.stderr)
    return not pool.failed and (complete or time.monotonic() >= pool.ends)


def collect(runs: Sequence[Runs], kept: Path) -> None:
    """Add the runs that have ended to the results."""
    for job, own in runs:
        loaded = [load(run.folder.path) for run in own]
        ended = [result for result in loaded if result is not None and result.done >= job.updates]
        if ended:
            results.add(job, ended, kept)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tiers = "; ".join(f"{name}: {tier['about']}" for name, tier in FACTS["tier"].items())
    parser.add_argument("command", choices=("run", "report"), help="train what has no result, or only write the pages")
    parser.add_argument("--tier", choices=FACTS["tier"], default="quick", help=tiers)
    parser.add_argument("--models", type=_names, default=[], help="some of the models, separated by commas")
    parser.add_argument("--cells", type=_names, default=[], help="some of the cells, separated by commas")
    parser.add_argument("--seeds", type=int, metavar="N", help="in place of the number of seeds that the tier has")
    parser.add_argument("--budget", type=float, metavar="MINUTES", help="then interrupt what runs and write the pages")
    parser.add_argument("--jobs", metavar="N", help="runs at once (default: one for each core)")
    parser.add_argument("--dask", metavar="ADDRESS|FILE|local", help="run on the workers of this Dask cluster")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", metavar="FOLDER", help="where the runs stand")
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help="where recordings and bible.txt are")
    parser.add_argument(
        "--results", type=Path, default=results.FOLDER, metavar="FOLDER", help="where the results stand"
    )
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", metavar="FOLDER", help="where the pages go")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.cells if name not in CELLS]:
        parser.error(f"no cell {', '.join(unknown)}; there are {', '.join(CELLS)}")
    complete = True
    try:
        if options.command == "run":
            wanted = jobs(options.tier, options.cells, options.models, options.data)
            for cell, lack in {job.cell: job.lack for job in wanted if job.lack}.items():
                print(f"{cell} is left out: {lack}", file=sys.stderr)
            wanted = [job for job in wanted if not job.lack]
            runs = planned(wanted, options.seeds, options.runs / f"reproduction-{options.tier}", options.results)
            complete = train(runs, options)
            collect(runs, options.results)
        for path in report.write(options.results, options.docs):
            print(path)
    except (UsageError, Failure) as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 1
    return 0 if complete else 130


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
