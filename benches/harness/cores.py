"""Rows on one thread and on two, in turns: the share of a call that the second thread does not shorten, 2 - t1 / t2,
and what it predicts for more cores by Amdahl's law.
"""

import statistics
from collections.abc import Callable
from typing import Any

import torch

import isometry
from harness.row import QUICK_ROUNDS, QUICK_SHARE, ROUNDS, Row, Settings
from harness.timing import alternate

CORES = 16
SECONDS = 4.0
HEADER = f"{'row':36} {'one ms':>9} {'two ms':>9} {'serial':>6} {f'on {CORES}':>6}"


def measured(row: Row, settings: Settings) -> dict[str, Any]:
    """Check, time and print our side of a row; returns its JSON entry. `samples` are seconds per call by threads."""
    entry, _ = row.checked()
    if entry["wrong"]:
        return entry
    seconds, rounds = (SECONDS * QUICK_SHARE, QUICK_ROUNDS) if settings.quick else (SECONDS, ROUNDS)
    functions = {str(count): on(count, row.ours.run) for count in (1, 2)}
    try:
        samples = alternate(functions, seconds, min_rounds=rounds)
    finally:
        budget(settings.threads)
    one, two = (statistics.median(times) for times in samples.values())
    share = serial(one, two)
    print(f"{row.name:36} {one * 1e3:9.3f} {two * 1e3:9.3f} {share:6.2f} {predicted(share):5.1f}x", flush=True)
    return entry | {"samples": samples, "serial": share, "predicted": predicted(share)}


def serial(one: float, two: float) -> float:
    """The share of a call that two threads do not shorten: 0 if they halve its time, 1 if they change nothing."""
    return 2 - one / two


def predicted(share: float, cores: int = CORES) -> float:
    """How many times as fast so many cores are by Amdahl's law."""
    share = min(max(share, 0.0), 1.0)
    return 1 / (share + (1 - share) / cores)


def budget(count: int) -> None:
    """So many threads for torch and for ours."""
    torch.set_num_threads(count)
    isometry.set_num_threads(count)


def on(count: int, call: Callable[[], object]) -> Callable[[], object]:
    """The call with so many threads, set where the call before had others."""

    def run() -> object:
        if isometry.get_num_threads() != count:
            budget(count)
        return call()

    return run
