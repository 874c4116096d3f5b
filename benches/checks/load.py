"""Calls from many threads and processes, run by the check `threads`: python load.py PHASE SECONDS.

threads    eight Python threads call operators, recurrences, the delta rule and layers with their gradients
loaders    four of them compute while forked data loaders do, and while the main thread trains
pools      forked processes with a pool of threads each, every task of which has a pool of its own

Every call must give the bits that it gave alone. Prints a JSON line: the calls, and the names of those that did not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

import isometry as iso
import isometry.torch as it

CALLERS, BUDGET = 8, 2  # Python threads; threads of a call
LAYERS = ("ORNN", "ScoRNN", "EURNN", "GORU", "RUM", "DeltaProduct")
Work = dict[str, Callable[[], Iterable[Any]]]


def numpy_work() -> Work:
    """Calls of the NumPy face, at sizes that use threads."""
    rng = np.random.default_rng(0)
    draw = rng.standard_normal
    op, x = iso.Householder(draw((256, 64))), draw((400, 256))
    cayley, stack = iso.Cayley(draw(190 * 189 // 2) / 30), iso.Cayley(draw((512, 28)) / 10)
    rotation = iso.Rotation(draw((4096, 8)), draw((4096, 8)))
    steps, v = draw((30, 40, 3)), draw((256, 3))
    q, k, value, beta = draw((2, 150, 4, 16)), draw((2, 150, 4, 16)) / 4, draw((2, 150, 4, 16)), rng.random((2, 150, 4))

    def recurrence() -> list[Any]:
        states = iso.recurrence(op, steps, v)
        found = iso.recurrence_vjp(op, steps, v, states, np.ones_like(states))
        return [states, found["x"], found["transition"]["vectors"]]

    def delta_rule() -> list[Any]:
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


def torch_work(gradients: bool) -> Work:
    """Layers that all threads share, and an operator; a forked child has no gradients, which torch refuses there."""
    torch.manual_seed(0)
    vectors, x = torch.randn(128, 32, requires_grad=gradients), torch.randn(300, 128)
    layers = {name: getattr(it.nn, name)(3, 64) for name in LAYERS}
    steps = torch.randn(40, 16, 3)

    def called(layer: torch.nn.Module) -> list[Any]:
        with torch.set_grad_enabled(gradients):
            out = layer(steps)[0]
        return [out, *(torch.autograd.grad(out.abs().sum(), list(layer.parameters())) if gradients else ())]

    def operator() -> list[Any]:
        out = it.Householder(vectors).apply(x)
        return [out, *(torch.autograd.grad(out.square().sum(), [vectors]) if gradients else ())]

    return {"torch Householder": operator} | {name: lambda layer=layer: called(layer) for name, layer in layers.items()}


def bits(found: Iterable[Any]) -> list[bytes]:
    arrays = [a.detach().resolve_conj().numpy() if isinstance(a, torch.Tensor) else a for a in found]
    return [np.ascontiguousarray(a).tobytes() for a in arrays if a is not None]


class Calls:
    """Calls whose bits are known, and the counts of those that were made since."""

    def __init__(self, work: Work) -> None:
        self.work, self.expected = work, {name: bits(call()) for name, call in work.items()}
        self.made, self.wrong, self.lock = 0, Counter[str](), threading.Lock()

    def call(self, name: str) -> bool:
        try:
            right = bits(self.work[name]()) == self.expected[name]
        except Exception as error:
            right, name = False, f"{name}: {error!r}"
        self.count(name, right)
        return right

    def count(self, name: str, right: bool) -> None:
        with self.lock:
            self.made += 1
            self.wrong[name] += not right

    def until(self, ends: float, first: int = 0) -> None:
        """Call one after the other until the time is over."""
        names = list(self.work)
        for k in itertools.count(first):
            if time.monotonic() >= ends:
                return
            self.call(names[k % len(names)])

    def callers(self, count: int, ends: float) -> list[threading.Thread]:
        """Started threads that call until then, each beginning with another call."""
        found = [threading.Thread(target=self.until, args=(ends, k)) for k in range(count)]
        for thread in found:
            thread.start()
        return found


def threads(ends: float) -> Calls:
    calls = Calls(numpy_work() | torch_work(gradients=True))
    for thread in calls.callers(CALLERS, ends):
        thread.join()
    return calls


class Computed(torch.utils.data.Dataset[bool]):
    """Items of which each is a call; True where its bits are right."""

    def __init__(self, calls: Calls) -> None:
        self.calls, self.names = calls, list(calls.work)

    def __len__(self) -> int:
        return 2 * len(self.names)

    def __getitem__(self, index: int) -> bool:
        return self.calls.call(self.names[index % len(self.names)])


def loaders(ends: float) -> Calls:
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


def pooled(calls: Calls, ends: float) -> tuple[int, Counter[str]]:
    """In a forked process: tasks of a pool of threads, each of which calls from a pool of its own."""
    torch.set_num_threads(1)  # torch's own operations cannot use threads in a forked child

    def task(_: int) -> None:
        with ThreadPoolExecutor(2) as inner:
            list(inner.map(calls.call, calls.work))

    with ThreadPoolExecutor(4) as outer:
        while time.monotonic() < ends:
            list(outer.map(task, range(8)))
    return calls.made, calls.wrong


CALLS: list[Calls] = []  # what the forked processes inherit


def inherited(ends: float) -> tuple[int, Counter[str]]:
    return pooled(CALLS[0], ends)


def pools(ends: float) -> Calls:
    calls = Calls(numpy_work() | torch_work(gradients=False))
    CALLS.append(calls)
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        results = list(pool.map(inherited, [ends, ends]))
    for made, wrong in results:
        calls.made += made
        calls.wrong += wrong
    return calls


PHASES = {"threads": threads, "loaders": loaders, "pools": pools}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("phase", choices=PHASES)
    parser.add_argument("seconds", type=float)
    options = parser.parse_args()
    iso.set_num_threads(BUDGET)
    it.set_num_threads(BUDGET)
    calls = PHASES[options.phase](time.monotonic() + options.seconds)
    print(json.dumps({"calls": calls.made, "wrong": +calls.wrong}))


if __name__ == "__main__":
    main()
