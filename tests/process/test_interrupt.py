"""Ctrl-C during a long call raises KeyboardInterrupt within about a second, and the package remains usable."""

import math
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from subprocesses import environment, script

pytestmark = pytest.mark.alone

LONG = """
    import signal, sys, time
    import numpy as np
    import isometry as iso

    # whoever runs the tests in the background may have it ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)

    kind, backward, threads = sys.argv[1], sys.argv[2] == "backward", int(sys.argv[3])
    n, batch = 1024, 4
    rng = np.random.default_rng(0)
    v = np.ones((n, 1)) / n
    if kind == "factored":
        op = iso.Householder(rng.standard_normal((n, 512)))
    else:
        op = iso.Dense(iso.Householder(rng.standard_normal((n, 1))).matrix())
    iso.set_num_threads(threads)

    def call(steps, wait=lambda: None):
        x = np.ones((steps, batch, 1))
        if not backward:
            wait()
            return iso.recurrence(op, x, v)
        states = np.zeros((steps, batch, n))
        ct = np.ones_like(states)
        wait()
        return iso.recurrence_vjp(op, x, v, states, ct, check_states=False)

    if kind in ("torch", "sqrt"):
        import torch
        import isometry.torch as it

        it.set_num_threads(threads)
        weight, input_weight = torch.from_numpy(op.weight).requires_grad_(), torch.from_numpy(v)
        lean = {} if kind == "torch" else {"checkpoint": "sqrt", "output": "last"}

        def call(steps, wait=lambda: None):
            x = torch.ones(steps, batch, 1, dtype=torch.float64)
            if not backward:
                wait()
                return it.recurrence(it.Dense(weight), x, input_weight, **lean)
            states = it.recurrence(it.Dense(weight), x, input_weight, **lean)
            wait()
            states.backward(torch.ones_like(states))

    def took(steps):
        start = time.perf_counter()
        call(steps)
        return time.perf_counter() - start

    took(20)
    per_step = min(took(50) for _ in range(4)) / 50  # a stall of the machine must not make the long call a short one
    limit = 60_000 if not backward else 20_000 if kind in ("torch", "sqrt") else 30_000
    steps = min(int(5 / per_step), limit)
    try:
        call(steps, lambda: print("ready", steps * per_step, flush=True))
    except KeyboardInterrupt:
        caught = time.monotonic()
        call(5)
        print("interrupted", caught, flush=True)
"""


INVERSE_MAP = """
    import signal, sys, time
    import numpy as np
    import isometry as iso

    signal.signal(signal.SIGINT, signal.default_int_handler)
    make, n = getattr(iso, sys.argv[1]), int(sys.argv[2])
    rng = np.random.default_rng(0)
    w = np.linalg.qr(rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)))[0]
    try:
        print("ready", 20, flush=True)
        make.from_matrix(w)
    except KeyboardInterrupt:
        caught = time.monotonic()
        make.from_matrix(w[:1, :1] / abs(w[0, 0]))
        print("interrupted", caught, flush=True)
"""


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("kind,threads", [("dense", 1), ("dense", 2), ("factored", 2), ("torch", 2), ("sqrt", 2)])
def test_interrupt(kind, direction, threads):
    interrupt([sys.executable, "-c", textwrap.dedent(LONG), kind, direction, str(threads)])


@pytest.mark.parametrize("make,n", [("Cayley", 700), ("Householder", 2000)])
def test_an_inverse_map_is_interrupted(make, n):
    interrupt([sys.executable, "-c", textwrap.dedent(INVERSE_MAP), make, str(n)], between=2.0)


def interrupt(command, between=0.5):
    """Sends ctrl-C to the command once it is ready; it must raise KeyboardInterrupt within a second and `between`."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as child:
        try:
            word, seconds = child.stdout.readline().split() or ("", "0")
            assert word == "ready", child.stderr.read()
            assert float(seconds) >= 3, f"the call would only take {seconds} s: too short to interrupt"
            time.sleep(0.3)
            assert child.poll() is None, f"the call that should take {seconds} s ended before ctrl-C"
            # one clock for all processes; the time to exit is torch's and the operating system's
            start = time.monotonic()
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=30)
        except BaseException:
            child.kill()
            raise
    assert child.returncode == 0, f"status {child.returncode}\n{out}{err}"
    word, caught = out.split() or ("", "0")
    assert word == "interrupted", f"the call of {seconds} s came back without KeyboardInterrupt\n{out}{err}"
    took = float(caught) - start
    assert took <= 1 + between, f"{took:.2f} s from ctrl-C to KeyboardInterrupt"


PAIRS = np.stack([np.arange(120_000) % 3000, np.arange(1, 120_001) % 3000], -1)
CALLS = {
    "Exponential": lambda a: iso.Exponential(a[:1800, :1800][np.triu_indices(1800, 1)] / 50).matrix,
    "Cayley": lambda a: iso.Cayley(a[np.triu_indices(len(a), 1)] / 50).matrix,
    "Cayley gradient": lambda a: partial(
        iso.Cayley(a[:2400, :2400][np.triu_indices(2400, 1)] / 50).matrix_vjp, a[:2400, :2400]
    ),
    "Householder rows": lambda a: partial(iso.Householder(a[:, :1000]).apply, np.concatenate([a, a])),
    "Givens": lambda a: partial(iso.Givens(a[:40].ravel(), PAIRS, n=3000).apply_vjp, a, a),
    "geqrf": lambda a: partial(iso.linalg.geqrf, a),
    "a tall geqrf": lambda a: partial(iso.linalg.geqrf, a.reshape(-1, 60)),
    "procrustes, singular": lambda a: partial(iso.linalg.procrustes, a @ np.diag(np.arange(len(a)) % 2.0)),
    "procrustes, gradient": lambda a: partial(
        iso.linalg.procrustes_vjp, a[:1200, :1200] * (np.arange(1200) > 0), a[:1200, :1200]
    ),
    "many matrices": lambda a: iso.Cayley(np.broadcast_to(a[0, :6], (3_000_000, 6))).matrix,
    "torch": lambda a: through_torch(torch.tensor(a[:2000, :2000][np.triu_indices(2000, 1)] / 50)),
}


def through_torch(upper):
    w = it.Exponential(upper.requires_grad_()).matrix()
    return lambda: w.sum().backward()


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("call", CALLS)
def test_operators_and_linalg(call, budget):
    """Operators and linalg are interrupted between products, panels, passes and matrices; then they compute."""
    compute = CALLS[call](np.random.default_rng(0).standard_normal((3000, 3000)))
    small = iso.Householder(np.ones((300, 20)))
    expected, old = small.matrix(), signal.signal(signal.SIGALRM, signal.default_int_handler)
    iso.set_num_threads(budget)
    it.set_num_threads(budget)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        start = time.monotonic() + 0.2
        with pytest.raises(KeyboardInterrupt):
            compute()
        took = time.monotonic() - start
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert np.array_equal(small.matrix(), expected)
    assert took <= 0.2 + 0.5, f"{took:.2f} s from the signal to KeyboardInterrupt"


FORK = """
    import os, signal, sys, time
    import numpy as np

    if sys.argv[1] == "torch":
        import torch
        import isometry.torch as it

        it.set_num_threads(2)
    import isometry as iso

    iso.set_num_threads(2)
    small, parent = iso.Householder(np.ones((300, 20))), os.getpid()
    expected = small.matrix()

    def fork(*_):
        if os.getpid() == parent and not children:
            children.append(os.fork())
            assert np.array_equal(small.matrix(), expected)

    children = []
    signal.signal(signal.SIGALRM, fork)
    upper = np.ones(1800 * 1799 // 2) / 1800
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        iso.Exponential(upper).matrix()
    except RuntimeError as error:
        assert os.getpid() != parent and "forked" in str(error), error
        assert np.array_equal(small.matrix(), expected)
        os._exit(7)
    assert os.getpid() == parent
    print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""


@pytest.mark.parametrize("team,status", [("rayon", 7), ("torch", -signal.SIGABRT)])
def test_a_process_forked_in_a_handler_leaves_the_call(team, status):
    """The child lacks the call's other threads: RuntimeError, or, from within a region of torch's team, the end."""
    assert int(script(FORK, team)) == status


@pytest.mark.parametrize("kind", ["recurrence", "delta rule"])
def test_a_signal_handler_computes_with_denormals(kind):
    """Handlers that run inside a call see the floating-point mode of their caller, as does what follows the call."""
    n, seen = 512, []
    op, x, v = iso.Dense(0.5 * np.eye(n)), np.ones((1500, 4, 1)), np.ones((n, 1))
    q = np.ones((1, 4000, 4, 64))
    kernels = {
        "recurrence": lambda: iso.recurrence(op, x, v, activation="identity"),
        "delta rule": lambda: iso.delta_rule(q, q, q, q[..., 0], normalise=True),
    }
    positive = lambda: 5e-324 > 0 and math.ulp(0.0) * 2 > 0 and float(np.float64(1e-310) / 2) > 0
    old = signal.signal(signal.SIGALRM, lambda *_: seen.append(positive()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.06, 0.06)
        end = time.monotonic() + 0.6
        while time.monotonic() < end or len(seen) < 3:
            kernels[kind]()
            assert positive()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert all(seen), seen
