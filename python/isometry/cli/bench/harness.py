"""Alternating runs: a sample is (time of r calls of f) / r, all functions in every round.

Only alternating runs compare: on a virtual machine the clock drifts by tens of percent over a minute.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping

SAMPLE_SECONDS = 2e-3  # a sample repeats a short call until it is long enough for the clock
WARMUP_CALLS = 2


def alternate(
    functions: Mapping[str, Callable[[], object]], seconds: float, *, min_rounds: int = 5, pause: float = 0.0
) -> dict[str, list[float]]:
    """Seconds per call of each function, a sample a round, over rounds that last `seconds` in all.

    Before each sample the process rests for `pause` seconds, so that the threads of the previous function have gone
    to sleep; a short call is then made once untimed.

    >>> samples = alternate({"nothing": lambda: None}, 0.01)
    >>> 0 < min(samples["nothing"]) < 1e-3
    True
    """
    repeats = {}
    for name, function in functions.items():
        for _ in range(WARMUP_CALLS):
            function()
        repeats[name] = max(1, round(SAMPLE_SECONDS / max(_sample(function, 1), 1e-9)))
    samples: dict[str, list[float]] = {name: [] for name in functions}
    order = list(functions)
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        start, rounds = time.perf_counter(), 0
        while rounds < min_rounds or time.perf_counter() - start < seconds:
            for name in order:
                if pause:
                    time.sleep(pause)
                    if repeats[name] > 1:
                        functions[name]()
                samples[name].append(_sample(functions[name], repeats[name]))
            order.append(order.pop(0))  # no function always runs after the same one
            rounds += 1
    finally:
        if enabled:
            gc.enable()
    return samples


def _sample(function: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats
