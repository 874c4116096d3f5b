"""Arrays without elements whose other axes are huge: a call returns or refuses at once, whatever the sizes are."""

import itertools
import signal

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it

#: Sizes of an axis whose product with another one no loop can go over.
HUGE = 1 << 20
pytestmark = pytest.mark.cpu


def shapes(rank):
    """All shapes of this rank with a 0 and two huge sizes or more, or one that is huge squared."""
    for sizes in itertools.product((0, 2, HUGE, HUGE * HUGE), repeat=rank):
        if 0 in sizes and np.prod([float(size or 1) for size in sizes]) in (float(HUGE) ** 2, 2.0 * HUGE**2):
            yield sizes


def arrays(package):
    return np.zeros if package == "numpy" else lambda shape: torch.zeros(shape, dtype=torch.float64)


def recurrences(package):
    api, zeros = iso if package == "numpy" else it, arrays(package)
    for shape, n, output in itertools.product(shapes(3), (0, 3), ("states", "last")):
        if shape[2] > HUGE:
            continue  # weights (n, d) are no small arrays
        yield lambda s=shape, n=n, o=output: api.recurrence(
            api.Dense(zeros((n, n))), zeros(s), zeros((n, s[2])), output=o
        )
        if package == "torch":
            yield lambda s=shape, n=n, o=output: it.gru(zeros(s), zeros((3, n, n)), zeros((3, n, s[2])), output=o)


def deltas(package):
    api, zeros = iso if package == "numpy" else it, arrays(package)
    for (b, t), (k, v) in itertools.product(shapes(2), ((1, 1), (0, 1))):
        yield lambda b=b, t=t, k=k, v=v: api.delta_rule(
            zeros((b, t, 1, k)), zeros((b, t, 1, k)), zeros((b, t, 1, v)), zeros((b, t, 1)), g=zeros((b, t, 1))
        )


def matrices(package):
    api, zeros = iso if package == "numpy" else it, arrays(package)
    for shape in shapes(3):
        yield lambda s=shape: api.linalg.geqrf(zeros(s))
        yield lambda s=shape: api.linalg.procrustes(zeros(s))
        yield lambda s=shape: api.linalg.householder_product(zeros(s), zeros((s[0], min(s[1:]))))
        yield lambda s=shape: api.activate(zeros(s), "oplu")
        yield lambda s=shape: api.Householder(zeros(s)).matrix()
        yield lambda s=shape: api.Givens(
            zeros(s[:2]), zeros((*s[:2], 2)).astype(int) if package == "numpy" else zeros((*s[:2], 2)).long(), n=4
        ).matrix()
        yield lambda s=shape: api.Hadamard(zeros((*s[:2], 4))).matrix()
        yield lambda s=shape: api.Mesh(zeros(s[:2]), n=2, layers=2 * s[1] - 1).matrix()


def tangents(package):
    """In torch operations, whose loops are in Python."""
    if package == "numpy":
        return
    zeros = arrays(package)
    torch.func.jvp(it.linalg.geqrf, (torch.ones(2, 2),), (torch.ones(2, 2),))  # loads torch's rules
    for t in (HUGE, HUGE * HUGE):
        q, b = zeros((0, t, 1, 1)), zeros((0, t, 1))
        yield lambda q=q, b=b: torch.func.jvp(lambda q: it.delta_rule(q, q, q, b, g=b), (q,), (q,))
    x = zeros((0, HUGE, HUGE))
    yield lambda: torch.func.jvp(it.linalg.geqrf, (x,), (x,))


@pytest.mark.parametrize("calls", [recurrences, deltas, matrices, tangents])
@pytest.mark.parametrize("package", ["numpy", "torch"])
def test_huge_axes_beside_an_empty_one(calls, package):
    """About 250 calls of each package; memory that does not suffice is refused as such."""

    def late(*_):
        raise TimeoutError

    old = signal.signal(signal.SIGALRM, late)
    try:
        for number, call in enumerate(calls(package)):
            signal.setitimer(signal.ITIMER_REAL, 20)  # a busy machine
            try:
                call()
            except (ValueError, MemoryError):
                pass
            except RuntimeError as error:
                assert "memory" in str(error) or "overflow" in str(error) or "too large" in str(error), error
            except TimeoutError:
                pytest.fail(f"call {number} goes on and on")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
