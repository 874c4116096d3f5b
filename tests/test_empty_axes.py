"""Arrays without elements whose other axes are huge: a call returns or refuses at once, whatever the sizes are."""

import itertools
import signal

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from registry.cells import CELLS, CellCase

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
    for cell, shape, n, output in itertools.product(CELLS.values(), shapes(3), (0, 3), ("states", "last")):
        if shape[2] > HUGE:
            continue  # weights (n, d) are no small arrays
        case, sizes = CellCase(cell, next(iter(cell.variants))), {"d": shape[2], "n": n}
        weights = {name: axes.split() for name, axes in cell.arrays.items() if axes[0] not in "TB"}
        size = lambda axis, sizes=sizes: int(axis[:-1] or 1) * sizes[axis[-1]] if axis[-1] in sizes else int(axis)

        def call(cell=cell, case=case, weights=weights, size=size, shape=shape, n=n, output=output):
            given = {name: zeros(tuple(map(size, axes))) for name, axes in weights.items()}
            lead = [api.Dense(zeros((n, n)))] if case.own else []
            getattr(api, cell.stem)(*lead, x=zeros(shape), **given, **case.kind.settings, output=output)

        yield call


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
    """Hundreds of calls of each package; memory that does not suffice is refused as such."""

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
