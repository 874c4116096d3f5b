"""Calls from many threads and processes: every one must give the bits that it gave alone."""

import itertools
import multiprocessing
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it

pytestmark = [pytest.mark.alone, pytest.mark.timeout(8 * 3600)]

CALLERS, BUDGET = 8, 2  # Python threads; threads of a call
LAYERS = ("ORNN", "ScoRNN", "EURNN", "GORU", "RUM", "DeltaProduct")


def numpy_work():
    """Calls of the NumPy face, at sizes that use threads."""
    rng = np.random.default_rng(0)
    draw = rng.standard_normal
    op, x = iso.Householder(draw((256, 64))), draw((400, 256))
    cayley, stack = iso.Cayley(draw(190 * 189 // 2) / 30), iso.Cayley(draw((512, 28)) / 10)
    rotation = iso.Rotation(draw((4096, 8)), draw((4096, 8)))
    steps, v = draw((30, 40, 3)), draw((256, 3))
    q, k, value, beta = draw((2, 150, 4, 16)), draw((2, 150, 4, 16)) / 4, draw((2, 150, 4, 16)), rng.random((2, 150, 4))

    def recurrence():
        states = iso.recurrence(op, steps, v)
        found = iso.recurrence_vjp(op, steps, v, states, np.ones_like(states))
        return [states, found["x"], found["transition"]["vectors"]]

    def delta_rule():
        found = iso.delta_rule(q, k, value, beta)
        return [*found, *iso.delta_rule_vjp(q, k, value, beta, *map(np.ones_like, found)).values()]

    return {
        "Householder": lambda: [op.apply(x), *op.apply_vjp(x, x)[0].values()],
        "Cayley": lambda: [cayley.matrix(), *cayley.matrix_vjp(np.ones((190, 190))).values()],
        "stack of Cayley": lambda: [stack.matrix()],
        "Rotation": lambda: [rotation.apply(x[0, :8])],
        "recurrence": recurrence,
        "delta_rule": delta_rule,
    }


def torch_work(gradients):
    """Layers that all threads share, and an operator; a forked child has no gradients, which torch refuses there."""
    torch.manual_seed(0)
    vectors, x = torch.randn(128, 32, requires_grad=gradients), torch.randn(300, 128)
    layers = {name: getattr(it.nn, name)(3, 64) for name in LAYERS}
    steps = torch.randn(40, 16, 3)

    def called(layer):
        with torch.set_grad_enabled(gradients):
            out = layer(steps)[0]
        return [out, *(torch.autograd.grad(out.abs().sum(), list(layer.parameters())) if gradients else ())]

    def operator():
        out = it.Householder(vectors).apply(x)
        return [out, *(torch.autograd.grad(out.square().sum(), [vectors]) if gradients else ())]

    return {"torch Householder": operator} | {name: lambda layer=layer: called(layer) for name, layer in layers.items()}


def bits(found):
    arrays = [a.detach().resolve_conj().numpy() if isinstance(a, torch.Tensor) else a for a in found]
    return [np.ascontiguousarray(a).tobytes() for a in arrays if a is not None]


class Calls:
    """Calls whose bits are known, and the counts of those that were made since."""

    def __init__(self, work):
        self.work, self.expected = work, {name: bits(call()) for name, call in work.items()}
        self.made, self.wrong, self.lock = 0, Counter(), threading.Lock()

    def call(self, name):
        try:
            right = bits(self.work[name]()) == self.expected[name]
        except Exception as error:
            right, name = False, f"{name}: {error!r}"
        self.count(name, right)
        return right

    def count(self, name, right):
        with self.lock:
            self.made += 1
            self.wrong[name] += not right

    def until(self, ends, first=0):
        """Call one after the other until the time is over."""
        names = list(self.work)
        for k in itertools.count(first):
            if time.monotonic() >= ends:
                return
            self.call(names[k % len(names)])

    def callers(self, count, ends):
        """Started threads that call until then, each beginning with another call."""
        found = [threading.Thread(target=self.until, args=(ends, k)) for k in range(count)]
        for thread in found:
            thread.start()
        return found


def threads(ends):
    calls = Calls(numpy_work() | torch_work(gradients=True))
    for thread in calls.callers(CALLERS, ends):
        thread.join()
    return calls


class Computed(torch.utils.data.Dataset):
    """Items of which each is a call; True where its bits are right."""

    def __init__(self, calls):
        self.calls, self.names = calls, list(calls.work)

    def __len__(self):
        return 2 * len(self.names)

    def __getitem__(self, index):
        return self.calls.call(self.names[index % len(self.names)])


def loaders(ends):
    calls, inside = Calls(numpy_work() | torch_work(gradients=True)), Calls(numpy_work() | torch_work(gradients=False))
    callers = calls.callers(CALLERS // 2, ends)
    while time.monotonic() < ends:
        loader = torch.utils.data.DataLoader(Computed(inside), num_workers=2, multiprocessing_context="fork")
        for name, right in zip(itertools.cycle(inside.work), loader, strict=False):
            calls.count(f"{name} in a forked loader", bool(right))
        calls.call("ScoRNN")
    for thread in callers:
        thread.join()
    return calls


CALLS = []  # what the forked processes inherit


def pooled(ends):
    """In a forked process: tasks of a pool of threads, each of which calls from a pool of its own."""
    torch.set_num_threads(1)  # torch's own operations cannot use threads in a forked child
    (calls,) = CALLS

    def task(_):
        with ThreadPoolExecutor(2) as inner:
            list(inner.map(calls.call, calls.work))

    with ThreadPoolExecutor(4) as outer:
        while time.monotonic() < ends:
            list(outer.map(task, range(8)))
    return calls.made, calls.wrong


def pools(ends):
    calls = Calls(numpy_work() | torch_work(gradients=False))
    CALLS[:] = [calls]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        for made, wrong in pool.map(pooled, [ends, ends]):
            calls.made += made
            calls.wrong += wrong
    return calls


@pytest.fixture
def budget():
    faces, before = (iso, it), (iso.get_num_threads(), it.get_num_threads())
    for face in faces:
        face.set_num_threads(BUDGET)
    yield
    for face, count in zip(faces, before, strict=True):
        face.set_num_threads(count)


PHASES = {"eight threads": threads, "threads and forked loaders": loaders, "nested pools": pools}


@pytest.mark.usefixtures("budget")
@pytest.mark.parametrize("title", PHASES)
def test_every_call_gives_its_bits(sizes, figures, title):
    """Eight Python threads; four of them while forked data loaders compute and the main thread trains; forked processes
    with a pool of threads each, every task of which has a pool of its own.
    """
    calls = PHASES[title](time.monotonic() + sizes.seconds)
    figures.update(seconds=sizes.seconds, calls={title: calls.made})
    assert calls.made and not +calls.wrong, +calls.wrong
