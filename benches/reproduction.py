"""Trains every model on every task of the papers at desktop size, and writes what came out: docs/reproduction.md.

    python benches/reproduction.py --tier quick                 all that is missing, some minutes a system
    python benches/reproduction.py --tier full --budget 60      an hour of it; the same command goes on
    python benches/reproduction.py --tier full --report         write the report of the runs there are

What is run and what the papers claim stands in benches/reproduction.toml; models and tasks are those of the command
line. A cell whose task, or whose option of a task, this version does not have is left out, and said in the report. Runs
are those of `isometry compare`, in runs/reproduction-TIER/CELL/MODEL-SEED: what has ended is not run again, what was
interrupted (ctrl-C, or the end of the budget) goes on from its checkpoint. The first seed of all comes first. The
table with real data is that of `python examples/japanese_vowels.py > runs/reproduction-TIER/japanese-vowels.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import reproduction_report
from reproduction_cell import Cell

from isometry.cli import registry
from isometry.cli.compare.plan import plan
from isometry.cli.compare.pool import Pool, share
from isometry.cli.errors import Failure, UsageError

ROOT = Path(__file__).resolve().parents[1]
FACTS = tomllib.loads((ROOT / "benches/reproduction.toml").read_text(encoding="utf-8"))


def read(path: Path) -> dict[str, Any]:
    """A table that was written before; an empty one otherwise."""
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return table


def planned(options: argparse.Namespace, out: Path) -> list[Cell]:
    """The cells of a tier with their runs; hidden sizes that were solved for are remembered in sizes.json."""
    tier, file = FACTS["tier"][options.tier], out / "sizes.json"
    sizes = read(file)
    cells = []
    for facts in FACTS["cell"]:
        if options.cells and facts["name"] not in options.cells:
            continue
        parameters = round(facts.get("size", 1.0) * tier["parameters"])
        part = facts.get("share", {}).get(options.tier, tier["share"])
        cell = Cell(facts, max(2, round(part * facts["updates"])), parameters, {}, {})
        for model in options.models or registry.names("model"):
            key = f"{cell.name}, {model}"
            given = cell.given() | ({"hidden": str(sizes[key])} if key in sizes else {})
            target = None if key in sizes else cell.parameters
            try:
                runs = plan(given, [model], range(tier["seeds"]), target, out / cell.stem)
            except UsageError as error:
                if " holds a run with other settings " in str(error):
                    raise
                cell.missing[model] = " ".join(str(error).split())
                continue
            cell.runs[model] = runs
            sizes[key] = runs[0].settings["hidden"]
        cells.append(cell)
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(sizes, indent=1) + "\n", encoding="utf-8")
    return cells


def commands(cells: Sequence[Cell], threads: int) -> dict[str, list[str]]:
    """What is left to do: all cells and models with the first seed, then with the second."""
    left = {}
    seeds = max((len(runs) for cell in cells for runs in cell.runs.values()), default=0)
    for k in range(seeds):
        for cell in cells:
            for runs in cell.runs.values():
                if k < len(runs) and (words := runs[k].command(threads)) is not None:
                    left[f"{cell.stem}/{runs[k].name}"] = words
    return left


def train(cells: Sequence[Cell], options: argparse.Namespace, out: Path) -> bool:
    """Run what is left, within the budget; whether it was not interrupted. Failures are kept in failed.json."""
    processes, threads = share(sum(len(runs) for cell in cells for runs in cell.runs.values()), options.jobs, None)
    left, file = commands(cells, threads), out / "failed.json"
    print(f"{out}: {len(left)} runs to do, {processes} at once", file=sys.stderr)
    failed = read(file)
    pool = Pool(left, processes, None if options.budget is None else 60 * options.budget)
    complete = pool.run()
    failed = {name: message for name, message in failed.items() if name not in left} | pool.failed
    file.write_text(json.dumps(failed, indent=1) + "\n", encoding="utf-8")
    return complete or time.monotonic() >= pool.ends


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tiers = "; ".join(f"{name}: {tier['about']}" for name, tier in FACTS["tier"].items())
    parser.add_argument("--tier", choices=FACTS["tier"], default="quick", help=tiers)
    parser.add_argument("--models", type=_names, help="some of the models, separated by commas")
    parser.add_argument("--cells", type=_names, help="some of the cells, separated by commas")
    parser.add_argument("--budget", type=float, metavar="MINUTES", help="then interrupt what runs and write the report")
    parser.add_argument("--jobs", metavar="N", help="runs at once (default: one for each core)")
    parser.add_argument("--report", action="store_true", help="train nothing")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", metavar="FOLDER", help="where the runs stand")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", metavar="FOLDER", help="where the report goes")
    options = parser.parse_args(arguments)
    names = [facts["name"] for facts in FACTS["cell"]]
    if unknown := [name for name in options.cells or () if name not in names]:
        parser.error(f"no cell {', '.join(unknown)}; there are {', '.join(names)}")
    out = options.runs / f"reproduction-{options.tier}"
    try:
        cells = planned(options, out)
        complete = options.report or train(cells, options, out)
        failed = read(out / "failed.json")
        path = reproduction_report.write(cells, FACTS, options.tier, failed, out / "japanese-vowels.md", options.docs)
    except (UsageError, Failure) as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 1
    print(path)
    return 0 if complete else 130


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
