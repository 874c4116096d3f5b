"""Runs the rows: values first, then time; prints a table line by line and writes JSON."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

import isometry
from isometry import _core
from isometry.cli.bench.harness import alternate
from isometry.cli.bench.recurrence import MEAN
from isometry.cli.bench.row import Figure, Row, worst
from isometry.cli.info import processor

PEAK, PEAK_SIZE = "torch.mm", 512
SECONDS, QUICK_SECONDS = 6.0, 1.0
ROUNDS, QUICK_ROUNDS = 7, 3
HEADER = (
    f"{'row':36} {'ours ms':>9} {'peer ms':>9} {'ratio':>6} {'bar':>5} {'goal':>5}       {'share':>6}  plan    peer"
)


def run(
    groups: Sequence[str],
    makers: Iterable[Callable[[], Iterator[Row | Figure]]],
    *,
    quick: bool,
    json_file: str | None,
) -> int:
    """Carry out the groups; exit status 1 if a value of ours is wrong."""
    machine = {
        "processor": processor(),
        "threads": isometry.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "isometry": isometry.__version__,
        "kernels": {k: str(v) for k, v in _core.config().items()},
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "quick": quick,
    }
    print(f"isometry {machine['isometry']}, torch {machine['torch']}, {machine['processor']}")
    print(f"{machine['threads']} threads, float32, forward and backward, kernels {_core.config().get('simd')}")
    entries: list[dict[str, Any]] = []
    for group, maker in zip(groups, makers, strict=True):
        print(f"\n{group}\n{HEADER}" if group != "memory" else f"\n{group}", flush=True)
        found = [figure(r) if isinstance(r, Figure) else measure(r, quick) for r in maker()]
        entries += [{"group": group, **entry} for entry in found]
        if group == "recurrence":
            entries.append({"group": group, **mean(found)})
    wrong = [entry["row"] for entry in entries if entry["wrong"]]
    missed = [f"{e['row']} ({b['against']})" for e in entries for b in e["bars"] if b["mark"] == "MISS"]
    print(f"\nbars missed: {len(missed)}" + "".join(f"\n  {name}" for name in missed))
    if wrong:
        print(f"wrong values: {len(wrong)}" + "".join(f"\n  {name}" for name in wrong))
    if json_file is not None:
        with open(json_file, "w", encoding="utf-8") as file:
            json.dump({"machine": machine, "rows": entries}, file, indent=1)
    return 1 if wrong else 0


def measure(row: Row, quick: bool) -> dict[str, Any]:
    """One row: check, time, print, and the entry for JSON."""
    reference = row.reference()
    errors = {}
    for side in (row.ours, *row.peers):
        if side.results is not None:
            errors[side.name] = worst(side.results(), reference, row.tolerance)
    del reference
    entry: dict[str, Any] = {
        "row": row.name,
        "plan": row.plan,
        "tolerance": row.tolerance,
        "errors_in_tolerances": {name: error for name, (error, _) in errors.items()},
        "wrong": errors[row.ours.name][0] > 1,
        "bars": [],
    }
    if entry["wrong"]:
        error, where = errors[row.ours.name]
        print(f"{row.name:36} WRONG: the {where} is off by {error:.3g} tolerances; not timed", flush=True)
        return entry
    right = [peer for peer in row.peers if errors.get(peer.name, (0.0, ""))[0] <= 1]
    a = torch.randn(PEAK_SIZE, PEAK_SIZE)
    functions = {side.name: side.run for side in (row.ours, *right)} | {PEAK: lambda: a @ a}
    seconds, rounds = (QUICK_SECONDS, QUICK_ROUNDS) if quick else (SECONDS, ROUNDS)
    medians = alternate(functions, seconds, min_rounds=rounds)
    own, peak = medians[row.ours.name], 2 * PEAK_SIZE**3 / medians[PEAK]
    share = row.flops / own / peak
    entry |= {"seconds": medians, "flops": row.flops, "peak_gflops": peak / 1e9, "share": share}
    name = row.name
    for bar in row.bars:
        rivals = {peer.name: medians[peer.name] for peer in right if bar.peers is None or peer.name in bar.peers}
        if rivals:
            best = min(rivals, key=lambda rival: rivals[rival])
            entry["bars"].append(judged(bar.label, rivals[best] / own, bar.bar, bar.goal) | {"peer": best})
            ratio, mark = rivals[best] / own, entry["bars"][-1]["mark"]
            print(f"{name:36} {own * 1e3:9.3f} {rivals[best] * 1e3:9.3f} {ratio:5.2f}x {bar.bar:5g} {bar.goal:5g} "
                  f"{mark:5} {share:6.0%}  {row.plan:7} {best}", flush=True)  # fmt: skip
        name = ""
    if row.share is not None:
        entry["bars"].append(judged("product peak", share, *row.share) | {"peer": PEAK})
        print(f"{'':36} {'share of torch.mm':>19} {share:6.0%} {row.share[0]:5.0%} {row.share[1]:5.0%} "
              f"{entry['bars'][-1]['mark']:5}", flush=True)  # fmt: skip
    for peer in row.peers:
        if peer not in right:
            print(f"{'':36} left out, its {errors[peer.name][1]} is wrong: {peer.name}", flush=True)
        elif all(peer.name != bar["peer"] for bar in entry["bars"]):
            print(f"{'':36} {'':9} {medians[peer.name] * 1e3:9.3f}  also: {peer.name}", flush=True)
    return entry


def judged(against: str, ratio: float, bar: float, goal: float) -> dict[str, Any]:
    mark = "goal" if ratio >= goal else "pass" if ratio >= bar else "MISS"
    return {"against": against, "ratio": ratio, "bar": bar, "goal": goal, "mark": mark}


def mean(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The geometric mean of the ratios to the best orthogonal variant."""
    ratios = [bar["ratio"] for entry in entries for bar in entry["bars"] if bar["against"] == "best orthogonal"]
    value = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0.0
    bar = judged("best orthogonal", value, *MEAN)
    print(f"{f'geometric mean of {len(ratios)}':36} {'':19} {value:5.2f}x {MEAN[0]:5g} {MEAN[1]:5g} {bar['mark']}")
    return {"row": "geometric mean", "plan": "", "wrong": False, "bars": [bar | {"peer": ""}]}


def figure(row: Figure) -> dict[str, Any]:
    if row.value is None:
        print(f"{row.name}: not available", flush=True)
        return {"row": row.name, "plan": "", "wrong": False, "bars": [], **row.facts}
    bars = []
    mark = ""
    if row.bound is not None:
        mark = "pass" if row.value <= row.bound else "MISS"
        bars = [{"against": "bound", "ratio": row.value, "bar": row.bound, "goal": row.bound, "mark": mark, "peer": ""}]
    print(f"{row.name}: {row.value:.2f} {row.unit}, at most {row.bound} {mark}", flush=True)
    return {"row": row.name, "plan": "", "wrong": False, "bars": bars, **row.facts}
