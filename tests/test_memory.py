"""Memory of a recurrence grows by T B n values, the states, only; if memory runs out, a MemoryError."""

import sys
import textwrap

import pytest

from subprocesses import run, script

pytestmark = pytest.mark.alone

GROWTH = """
    import sys
    import numpy as np
    import isometry as iso

    route, direction = sys.argv[1:]
    n, batch, d = 128, 32, 2
    rng = np.random.default_rng(0)
    u = rng.standard_normal((n, 4 if route == "factored" else n)).astype(np.float32)
    op, v = iso.Householder(u), rng.standard_normal((n, d)).astype(np.float32)

    def field(name):
        with open("/proc/self/status") as status:
            return 1024 * int(next(line for line in status if line.startswith(name)).split()[1])

    def peak(steps):
        '''Bytes that the call itself adds at its highest point, its arguments not counted.'''
        x = np.ones((steps, batch, d), np.float32)
        if direction == "forward":
            call = lambda: iso.recurrence(op, x, v)
        else:
            states = iso.recurrence(op, x, v)
            ct = np.ones_like(states)
            call = lambda: iso.recurrence_vjp(op, x, v, states, ct)
        with open("/proc/self/clear_refs", "w") as clear:
            clear.write("5")
        before = field("VmRSS")
        result = call()
        return field("VmHWM") - before

    peak(100)
    short, long = 1000, 5000
    growth = (peak(long) - peak(short)) / ((long - short) * batch * n * 4)
    constant = peak(short)
    print(growth, constant)
"""


@pytest.mark.parametrize("route", ["dense", "factored"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_memory(route, direction):
    """In units of T B n values: 1 for the states, nothing more forward; backward only the gradient of x (d of n)."""
    growth = float(script(GROWTH, route, direction).split()[0])
    states, margin = (1.0 if direction == "forward" else 2 / 128), 0.1
    assert growth <= states + margin, f"{growth:.2f} T B n values"


EXHAUSTED = """
    import resource
    import numpy as np
    import isometry as iso

    n = 600
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


LAYER = """
    import sys
    import torch
    import isometry.torch as it

    name, mode = sys.argv[1:]
    n, batch, d = 64, 32, 2
    layer = getattr(it.nn, name)(d, n)
    values = n * (2 if layer.is_complex else 1)

    def field(name):
        with open("/proc/self/status") as status:
            return 1024 * int(next(line for line in status if line.startswith(name)).split()[1])

    def peak(steps):
        x = torch.ones(steps, batch, d)
        with open("/proc/self/clear_refs", "w") as clear:
            clear.write("5")
        before = field("VmRSS")
        with getattr(torch, mode)():
            result = layer(x)
        return field("VmHWM") - before

    peak(100)
    short, long = 2000, 10000
    print((peak(long) - peak(short)) / ((long - short) * batch * values * 4))
"""


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
@pytest.mark.parametrize("name", ["ORNN", "EURNN", "ScoRNN", "URNN", "GRU", "GORU", "RUM"])
def test_a_layer_saves_nothing_without_gradients(name, mode):
    """The states, and the input where it is converted; a GRU's gates would be 3 T B n more."""
    assert float(script(LAYER, name, mode)) <= 1 + 2 * 2 / 64 + 0.1


CHECKPOINT = """
    import sys
    import torch
    import isometry.torch as it

    checkpoint, output, activation = sys.argv[1:]
    n, batch, steps = 128, 16, 10000
    upper = (0.1 * torch.randn(n * (n - 1) // 2)).requires_grad_()
    v = (0.1 * torch.randn(n, 1)).requires_grad_()

    def field(name):
        with open("/proc/self/status") as status:
            return 1024 * int(next(line for line in status if line.startswith(name)).split()[1])

    def step(x):
        given = {"activation": activation, "checkpoint": checkpoint, "output": output}
        it.recurrence(it.Cayley(upper), x, v, **given).sum().backward()

    x = torch.randn(steps, batch, 1)
    step(x[:1000]), step(x[:1000])
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")
    before = field("VmRSS")
    step(x)
    print((field("VmHWM") - before) / (steps * batch * n * 4))
"""


@pytest.mark.parametrize(
    "checkpoint,activation,bound",
    [("none", "oplu", 1.05), ("sqrt", "oplu", 0.05), ("reversible", "oplu", 0.012), ("reversible", "identity", 0.012)],
)
def test_a_checkpoint_keeps_few_states(checkpoint, activation, bound):
    """Forward and backward of the last state of 10,000 steps, in units of T B n values: without a checkpoint all
    states, and no cotangents of them."""
    assert float(script(CHECKPOINT, checkpoint, "last", activation)) <= bound
