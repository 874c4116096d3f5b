"""Two threads and one, beside as many busy processes as there are cores: milliseconds, and the ratio of the two.

    python benches/contention.py [SECONDS]     seconds of every row (default 5)

Rows: an operator of the NumPy face with its gradient, and training steps of an ORNN and of torch's RNN. The first is
also run without the other processes. Every process of a row has its own threads; values of one and of two threads are
compared first.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

BUSY = "while True: pass"


def operator(threads: int) -> Callable[[], float]:
    """The gradient of a Cayley transform, n = 400."""
    import numpy as np

    import isometry as iso

    iso.set_num_threads(threads)
    rng = np.random.default_rng(0)
    op, grad = iso.Cayley(rng.standard_normal(400 * 399 // 2) / 30), np.ones((400, 400))

    def call() -> float:
        return float(np.linalg.norm(op.matrix_vjp(grad)["upper"]))

    return call


def layer(name: str, threads: int) -> Callable[[], float]:
    """A training step of 128 units on 784 steps of 50 sequences."""
    import torch

    import isometry.torch as it

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    rnn = it.nn.ORNN(1, 128, reflections=16) if name == "ORNN" else torch.nn.RNN(1, 128)
    optimiser = torch.optim.Adam(rnn.parameters(), lr=1e-3)
    x = torch.randn(784, 50, 1)

    def call() -> float:
        loss = rnn(x)[0][-1].square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    return call


def timed(name: str, threads: int, seconds: float) -> None:
    """In a process of its own: prints the first value, and the mean of the times after a second."""
    call = operator(threads) if name == "operator" else layer(name, threads)
    value, times, start = call(), [], time.perf_counter()
    while (began := time.perf_counter()) < start + 1 + seconds or not times:
        call()
        if began > start + 1:
            times.append(1e3 * (time.perf_counter() - began))
    print(json.dumps([value, statistics.mean(times)]))


def row(name: str, seconds: float, busy: int) -> None:
    """One and two threads beside so many busy processes."""
    # Sessions of their own, since Linux divides the cores among sessions first.
    others = [subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True) for _ in range(busy)]
    try:
        found = []
        for threads in (1, 2):
            command = [sys.executable, __file__, name, str(threads), str(seconds)]
            found.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    finally:
        for process in others:
            process.kill()
    (value, one), (same, two) = found
    if abs(value - same) > 1e-4 * abs(value):
        sys.exit(f"{name}: {value} with one thread, {same} with two")
    print(
        f"{name:9} {busy} busy processes: one thread {one:6.1f} ms, two {two:6.1f} ms, ratio {two / one:.2f}",
        flush=True,
    )


def main() -> None:
    if len(sys.argv) == 4:
        timed(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
        return
    seconds = float(sys.argv[1]) if sys.argv[1:] else 5.0
    row("operator", seconds, 0)
    for name in ("operator", "ORNN", "RNN"):
        row(name, seconds, os.cpu_count() or 1)


if __name__ == "__main__":
    main()
