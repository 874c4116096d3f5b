"""One row: its values are checked, then it is timed, printed and recorded. Needs no torch."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from isometry.cli.bench.harness import alternate
from isometry.cli.bench.memory import peak_of
from isometry.cli.bench.row import Row, worst

PEAK_SIZE = 512
QUICK_SHARE = 1 / 6
ROUNDS, QUICK_ROUNDS = 7, 3
HEADER = (
    f"{'row':36} {'ours ms':>9} {'peer ms':>9} {'ratio':>6} {'bar':>5} {'goal':>5}       {'share':>6}  plan    peer"
)


class Settings(NamedTuple):
    """The user's options."""

    threads: int
    quick: bool = False
    alone: bool = False
    only: str = ""


@dataclass(frozen=True)
class Frame:
    """The reference of a group's rows: `product` multiplies two float32 matrices of size PEAK_SIZE."""

    peak: str
    product: Callable[[], object]
    pause: float = 0.0
    seconds: float = 6.0


def measure(row: Row, frame: Frame, settings: Settings) -> dict[str, Any]:
    """Check, time and print a row; returns its JSON entry. `samples` are seconds per call, ours and of every peer."""
    peers = [] if settings.alone else row.peers
    reference = row.reference()
    errors = {}
    for side in (row.ours, *peers):
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
    right = [peer for peer in peers if errors.get(peer.name, (0.0, ""))[0] <= 1]
    functions = {side.name: side.run for side in (row.ours, *right)} | {frame.peak: frame.product}
    entry["peak_bytes"] = peak_of(row.ours.run)
    seconds, rounds = (frame.seconds * QUICK_SHARE, QUICK_ROUNDS) if settings.quick else (frame.seconds, ROUNDS)
    samples = alternate(functions, seconds, min_rounds=rounds, pause=frame.pause)
    medians = {name: statistics.median(times) for name, times in samples.items()}
    own, peak = medians[row.ours.name], 2 * PEAK_SIZE**3 / medians[frame.peak]
    share = row.flops / own / peak
    entry |= {"ours": row.ours.name, "seconds": medians, "flops": row.flops, "peak_gflops": peak / 1e9, "share": share}
    entry["samples"] = {name: [float(f"{t:.4g}") for t in times] for name, times in samples.items()}
    share_text = f"{share:6.0%}" if row.flops else f"{'':6}"
    name = row.name
    for bar in row.bars:
        rivals = {peer.name: medians[peer.name] for peer in right if bar.peers is None or peer.name in bar.peers}
        if rivals:
            best = min(rivals, key=lambda rival: rivals[rival])
            entry["bars"].append(judged(bar.label, rivals[best] / own, bar.bar, bar.goal) | {"peer": best})
            ratio, mark = rivals[best] / own, entry["bars"][-1]["mark"]
            print(f"{name:36} {own * 1e3:9.3f} {rivals[best] * 1e3:9.3f} {ratio:5.2f}x {bar.bar:5g} {bar.goal:5g} "
                  f"{mark:5} {share_text}  {row.plan:7} {best}", flush=True)  # fmt: skip
            name = ""
    if name:
        print(f"{name:36} {own * 1e3:9.3f} {'':34} {share_text}  {row.plan}".rstrip(), flush=True)
    if row.share is not None:
        entry["bars"].append(judged("product peak", share, *row.share) | {"peer": frame.peak})
        print(f"{'':36} {f'share of {frame.peak}':>19} {share:6.0%} {row.share[0]:5.0%} {row.share[1]:5.0%} "
              f"{entry['bars'][-1]['mark']:5}", flush=True)  # fmt: skip
    for peer in peers:
        if peer not in right:
            print(f"{'':36} left out, its {errors[peer.name][1]} is wrong: {peer.name}", flush=True)
        elif all(peer.name != bar["peer"] for bar in entry["bars"]):
            print(f"{'':36} {'':9} {medians[peer.name] * 1e3:9.3f}  also: {peer.name}", flush=True)
    return entry


def judged(against: str, ratio: float, bar: float, goal: float) -> dict[str, Any]:
    mark = "goal" if ratio >= goal else "pass" if ratio >= bar else "MISS"
    return {"against": against, "ratio": ratio, "bar": bar, "goal": goal, "mark": mark}
