"""Memory of a recurrence grows by T B n values, the states, only; if memory runs out, a MemoryError."""

import sys
import textwrap

import pytest

from subprocesses import run, script

pytestmark = pytest.mark.slow

PEAK = """
    import os, sys

    def field(name):
        with open("/proc/self/status") as status:
            return 1024 * int(next(line for line in status if line.startswith(name)).split()[1])

    def added(call):
        '''Bytes that the call itself adds at its highest point, its arguments not counted.'''
        with open("/proc/self/clear_refs", "w") as clear:
            clear.write("5")
        before = field("VmRSS")
        result = call()
        return field("VmHWM") - before

    def alone(measure, *arguments):
        '''In a process that has used no memory before.'''
        if os.fork() == 0:
            print(*arguments, measure(*arguments), flush=True)
            os._exit(0)
        assert os.wait()[1] == 0
"""


def measured(text):
    """What the script measures, with all threads: arguments -> the number of units."""
    found = script(PEAK + text, timeout=240, OMP_NUM_THREADS=None, ISOMETRY_NUM_THREADS=None)
    lines = [line.split() for line in found.splitlines()]
    return {tuple(words[:-1]): float(words[-1]) for words in lines}


GROWTH = """
    import numpy as np
    import isometry as iso

    n, batch, d = 128, 32, 2
    rng = np.random.default_rng(0)

    def growth(route, direction):
        u = rng.standard_normal((n, 4 if route == "factored" else n)).astype(np.float32)
        op, v = iso.Householder(u), rng.standard_normal((n, d)).astype(np.float32)

        def peak(steps):
            x = np.ones((steps, batch, d), np.float32)
            if direction == "forward":
                return added(lambda: iso.recurrence(op, x, v))
            states = iso.recurrence(op, x, v)
            ct = np.ones_like(states)
            return added(lambda: iso.recurrence_vjp(op, x, v, states, ct))

        peak(100)
        short, long = 1000, 5000
        return (peak(long) - peak(short)) / ((long - short) * batch * n * 4)

    for route in ("dense", "factored"):
        for direction in ("forward", "backward"):
            alone(growth, route, direction)
"""


def test_memory():
    """In units of T B n values: 1 for the states, nothing more forward; backward only the gradient of x (d of n)."""
    found = measured(GROWTH)
    assert len(found) == 4
    for (route, direction), growth in found.items():
        states, margin = (1.0 if direction == "forward" else 2 / 128), 0.1
        assert growth <= states + margin, f"{route}, {direction}: {growth:.2f} T B n values"


IDLE = """
    import threading
    import numpy as np
    import isometry as iso

    n, count, now = 512, 100, sys.argv[1] == "at once"
    op = iso.Dense(iso.Householder(np.ones((n, 1), np.float32)).matrix())
    x, v = np.ones((4, 2, 4), np.float32), np.ones((n, 4), np.float32)
    started, ended, turn = threading.Barrier(count + 1), threading.Barrier(count + 1), threading.Lock()

    def call():
        started.wait()
        if now:
            iso.recurrence(op, x, v)
        else:
            with turn:
                iso.recurrence(op, x, v)
        ended.wait()
        ended.wait()

    iso.recurrence(op, x, v)
    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    before = field("VmRSS")
    started.wait()
    ended.wait()
    print(field("VmRSS") - before)
    ended.wait()
"""


@pytest.mark.parametrize("when", ["in turn", "at once"])
def test_idle_threads_keep_little(when):
    """100 threads that made one call each and live on."""
    added = int(script(PEAK + IDLE, when))
    assert added <= 60 << 20, f"{added >> 20} MiB"


EXHAUSTED = """
    import resource
    import numpy as np
    import isometry as iso

    n = 1500
    op = iso.Cayley(np.zeros(n * (n - 1) // 2, np.float32))
    right = lambda w: np.array_equal(w, np.eye(n))
    assert right(op.matrix())  # the threads are there, with their stacks
    before, found = resource.getrlimit(resource.RLIMIT_AS), set()
    for room in range(0, 8 * n * n * 4, n * n // 4):
        with open("/proc/self/statm") as statm:
            size = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + room, before[1]))
        try:
            found.add("right" if right(op.matrix()) else "wrong")
        except MemoryError as error:
            found.add("refused" if str(error).startswith("isometry needs") else "no room for W")
        resource.setrlimit(resource.RLIMIT_AS, before)
    print(*sorted(found - {"no room for W"}))
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_no_memory(threads):
    """Wherever an allocation fails there is a clean error, nothing on stderr, and later calls work."""
    done = run([sys.executable, "-c", textwrap.dedent(EXHAUSTED)], check=False, ISOMETRY_NUM_THREADS=str(threads))
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["refused", "right"], "")


CHECKPOINT = """
    import torch
    import isometry.torch as it

    n, batch, steps = 128, 16, 10000

    def peak(checkpoint, activation):
        upper = (0.1 * torch.randn(n * (n - 1) // 2)).requires_grad_()
        v = (0.1 * torch.randn(n, 1)).requires_grad_()

        def step(x):
            given = {"activation": activation, "checkpoint": checkpoint, "output": "last"}
            it.recurrence(it.Cayley(upper), x, v, **given).sum().backward()

        x = torch.randn(steps, batch, 1)
        step(x[:1000]), step(x[:1000])
        return added(lambda: step(x)) / (steps * batch * n * 4)

    for form in (("none", "oplu"), ("sqrt", "oplu"), ("reversible", "oplu"), ("reversible", "identity")):
        alone(peak, *form)
"""


def test_a_checkpoint_keeps_few_states():
    """Forward and backward of the last state of 10,000 steps, in units of T B n values: without a checkpoint all
    states, and no cotangents of them."""
    bounds = {"none": 1.05, "sqrt": 0.05, "reversible": 0.012}
    found = measured(CHECKPOINT)
    assert len(found) == 4
    for (checkpoint, activation), peak in found.items():
        assert peak <= bounds[checkpoint], f"{checkpoint}, {activation}: {peak:.3f} T B n values"
