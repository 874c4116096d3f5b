"""Memory of a scoRNN over T steps in units of T B n values: what is held between forward and backward, and the peak.

Only the states are kept, and backward needs workspace of constant size: both figures are 1. The cotangent of the
states, created by the loss, is allocated before the measurement. Each length runs in its own process; a figure is the
difference between two lengths, which cancels all constants. The peak is the kernel's VmHWM: ru_maxrss of a child
starts at its parent's, whose earlier rows may have used more.

`peak_of` measures the peak of one call of any row in the process that times it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator

from isometry.cli.bench.row import Figure

N, BATCH = 190, 20
LENGTHS = (3000, 9000)
BOUND = 1.1


def rows(alone: bool = False) -> Iterator[Figure]:
    short, long = LENGTHS
    sides = ("isometry",) if alone else ("isometry", "torch")
    found = {side: (measured(side, short), measured(side, long)) for side in sides}
    size = (long - short) * BATCH * N * 4
    for kind, text in (("held", "between forward and backward"), ("peak", "peak of forward and backward")):
        slopes = {side: slope(pair[0][kind], pair[1][kind], size) for side, pair in found.items()}
        theirs = slopes.get("torch")
        yield Figure(
            name=f"memory of a scoRNN layer, {text}",
            value=slopes["isometry"],
            unit="T B n values" + ("" if theirs is None else f" (torch loop: {theirs:.1f})"),
            bound=BOUND,
            facts={
                **{f"slope {side}": value for side, value in slopes.items()},
                **{f"bytes {side}": pair[0][kind] for side, pair in found.items()},
                "short": short,
                "long": long,
            },
        )


def slope(short: int | None, long: int | None, size: int) -> float | None:
    """Growth in units of size; None if the system does not report it: the states alone make it positive."""
    if short is None or long is None or long <= short:
        return None
    return (long - short) / size


def measured(side: str, steps: int) -> dict[str, int | None]:
    """Bytes held after the forward and at the peak, from a separate process."""
    command = [sys.executable, "-m", "isometry.cli.bench.memory", side, str(steps)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


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


def child(side: str, steps: int) -> dict[str, int | None]:
    import torch

    import isometry.torch as it
    from isometry.cli.bench import recurrence

    layer = it.nn.ScoRNN(1, N)
    x, cotangent = torch.randn(steps, BATCH, 1), torch.ones(steps, BATCH, N)
    layer(x[:64])[0].sum().backward()  # pools, libraries and workspaces are created before the measurement
    start = memory("VmRSS")
    if side == "isometry":
        states = layer(x)[0]
    else:
        square, bias = (torch.randn(N, N) * 0.05).requires_grad_(), torch.zeros(N, requires_grad=True)
        leaves = {"transition": square, "input_weight": torch.randn(N, 1, requires_grad=True), "bias": bias}
        states = recurrence.loop(leaves, x, torch.ones(N))()
    held = growth("VmRSS", start)
    states.backward(cotangent)
    return {"held": held, "peak": growth("VmHWM", start)}


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], int(sys.argv[2]))))
