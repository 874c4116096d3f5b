"""Ctrl-C during a long call raises KeyboardInterrupt within about a second, and the package remains usable."""

import math
import signal
import time
from functools import partial

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from subprocesses import script

pytestmark = pytest.mark.alone

PAIRS = np.stack([np.arange(480_000) % 3000, np.arange(1, 480_001) % 3000], -1)


def recurrence(op):
    return partial(iso.recurrence, op, np.ones((20_000, 4, 1)), np.ones((1024, 1)) / 1024)


def gradient(op):
    """Of states that are zero, which take no memory before they are read."""
    states, ct = (np.zeros((20_000, 4, 1024)) for _ in range(2))
    given = *recurrence(op).args, states, ct
    return partial(iso.recurrence_vjp, *given, check_states=False, check_finite=False)


def of_torch(w, **options):
    """A recurrence that is recorded."""
    x, v = torch.ones(8000, 4, 1, dtype=torch.float64), torch.ones(1024, 1, dtype=torch.float64) / 1024
    return lambda: it.recurrence(it.Dense(torch.tensor(w, requires_grad=True)), x, v, **options).sum()


def unitary(a):
    return np.linalg.qr(a + 1j * a.T)[0]


LEAN = {"checkpoint": "sqrt", "output": "last"}
CALLS = {
    "dense": lambda a: recurrence(iso.Dense(a[:1024, :1024] / 64)),
    "dense, gradient": lambda a: gradient(iso.Dense(a[:1024, :1024] / 64)),
    "factored": lambda a: recurrence(iso.Householder(a[:1024, :512])),
    "factored, gradient": lambda a: gradient(iso.Householder(a[:1024, :512])),
    "recorded": lambda a: of_torch(a[:1024, :1024] / 64),
    "recorded, gradient": lambda a: of_torch(a[:1024, :1024] / 64)().backward,
    "checkpoint": lambda a: of_torch(a[:1024, :1024] / 64, **LEAN),
    "checkpoint, gradient": lambda a: of_torch(a[:1024, :1024] / 64, **LEAN)().backward,
    "Cayley.from_matrix": lambda a: partial(iso.Cayley.from_matrix, unitary(a[:700, :700])),
    "Householder.from_matrix": lambda a: partial(iso.Householder.from_matrix, unitary(a[:2000, :2000])),
    "Exponential": lambda a: iso.Exponential(a[:1800, :1800][np.triu_indices(1800, 1)] / 50).matrix,
    "Cayley": lambda a: iso.Cayley(a[np.triu_indices(len(a), 1)] / 50).matrix,
    "Cayley gradient": lambda a: partial(
        iso.Cayley(a[:2400, :2400][np.triu_indices(2400, 1)] / 50).matrix_vjp, a[:2400, :2400]
    ),
    "Householder rows": lambda a: partial(iso.Householder(a[:, :1000]).apply, np.concatenate([a, a])),
    "Givens": lambda a: partial(iso.Givens(a[:160].ravel(), PAIRS, n=3000).apply_vjp, a, a),
    "geqrf": lambda a: partial(iso.linalg.geqrf, a),
    "a tall geqrf": lambda a: partial(iso.linalg.geqrf, a.reshape(-1, 60)),
    "procrustes, singular": lambda a: partial(iso.linalg.procrustes, a @ np.diag(np.arange(len(a)) % 2.0)),
    "procrustes, gradient": lambda a: partial(
        iso.linalg.procrustes_vjp, a[:1200, :1200] * (np.arange(1200) > 0), a[:1200, :1200]
    ),
    "many matrices": lambda _: partial(iso.Cayley(np.ones((3_000_000, 6))).matrix_vjp, np.ones((3_000_000, 4, 4))),
    "torch": lambda a: through_torch(torch.tensor(a[:2000, :2000][np.triu_indices(2000, 1)] / 50)),
}


def through_torch(upper):
    w = it.Exponential(upper.requires_grad_()).matrix()
    return lambda: w.sum().backward()


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("call", CALLS)
def test_interrupt(call, budget):
    """Between steps, products, panels, passes and matrices; then calls compute as before."""
    compute = CALLS[call](np.random.default_rng(0).standard_normal((3000, 3000)))
    small = iso.Householder(np.ones((300, 20)))
    expected, old = small.matrix(), signal.signal(signal.SIGALRM, signal.default_int_handler)
    iso.set_num_threads(budget)
    it.set_num_threads(budget)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        start = time.monotonic() + 0.1
        with pytest.raises(KeyboardInterrupt):
            compute()
        took = time.monotonic() - start
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert np.array_equal(small.matrix(), expected)
    assert took <= (2.5 if "from_matrix" in call else 1.5), f"{took:.2f} s from the signal to KeyboardInterrupt"


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
    signal.setitimer(signal.ITIMER_REAL, 0.1)
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
