"""Time and memory of calls. Times are taken in alternating runs: a sample is (time of r calls of f) / r, all functions
in every round. Only alternating runs compare: on a virtual machine the clock drifts by tens of percent over a minute.
"""

import ctypes
import gc
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext

SAMPLE_SECONDS = 2e-3  # a sample repeats a short call until it is long enough for the clock
WARMUP_CALLS = 2


def alternate(
    functions: Mapping[str, Callable[[], object]], seconds: float, *, min_rounds: int = 5, pause: float = 0.0
) -> dict[str, list[float]]:
    """Seconds per call of each function, one sample per round, over rounds that last `seconds` in all.

    Before each sample the process rests for `pause` seconds, so that the threads of the previous function have gone
    to sleep; a short call is then made once untimed. A function may have a context for its samples, `around`.

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
            order.append(order.pop(0))  # so that no function always runs after the same one
            rounds += 1
    finally:
        if enabled:
            gc.enable()
    return samples


def _sample(function: Callable[[], object], repeats: int) -> float:
    around = getattr(function, "around", None)
    with around() if around else nullcontext():
        if around:
            function()
        start = time.perf_counter()
        for _ in range(repeats):
            function()
        return (time.perf_counter() - start) / repeats


def memory(field: str) -> int | None:
    """Resident bytes of this process: now ("VmRSS") or at most so far ("VmHWM"); None if not reported."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next((1024 * int(line.split()[1]) for line in file if line.startswith(field + ":")), None)
    except OSError:
        return None


def growth(field: str, start: int | None) -> int | None:
    now = memory(field)
    return None if now is None or start is None else now - start


def peak_of(call: Callable[[], object]) -> int | None:
    """Bytes by which a second call raises the peak memory of this process; None if not reported."""
    call()
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)  # otherwise memory freed by the first call would hide the second's
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # resets VmHWM to VmRSS
    except (AttributeError, OSError):
        return None
    start = memory("VmRSS")
    call()
    return growth("VmHWM", start)
