"""The delta rule beside what bounds it: a copy of the state, linear time, and the memory of a step of autograd."""

import statistics
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

import isometry
import isometry.torch as it
from harness.cores import budget, on
from harness.figure import Figure, Later, peak
from harness.timing import alternate
from rows.torch.delta import HEADS, LENGTHS, UNBIND, WIDTH, drawn, ours, token, training

SECONDS = 2.0
#: The lengths whose time per token is compared, of two heads.
SHORT, LONG = 4096, 65_536


def figures() -> Iterator[Later]:
    yield Later("one token, beside a copy of the state", partial(beside_a_copy, token().ours.run, 1.5))
    yield Later("one token in place, beside a copy of the state", partial(beside_a_copy, in_place(), 3.0))
    for grad in (False, True):
        kind = "forward and backward" if grad else "forward"
        yield Later(f"{kind}, time per token at T{LONG}", partial(linear, grad))
        yield Later(f"one head T{SHORT}, {kind}, two threads in units of one", partial(shared, grad))
    longest = training(LENGTHS[-1])
    yield Later("peak memory of " + longest.name, partial(peak, longest, UNBIND, 0.25))


def compared(first: Callable[[], object], second: Callable[[], object]) -> float:
    """The time of the first call in units of the second."""
    samples = alternate({"first": first, "second": second}, SECONDS)
    return statistics.median(samples["first"]) / statistics.median(samples["second"])


def in_place() -> Callable[[], Tensor]:
    """One token that changes its state."""
    q, k, v, g, beta, state = drawn(1, state=True).values()
    return torch.no_grad()(lambda: it.delta_rule(q, k, v, beta, g=g, initial_state=state, out_state=state)[0])


def beside_a_copy(token: Callable[[], object], bound: float, name: str) -> Figure:
    state = torch.randn(1, HEADS, WIDTH, WIDTH)
    room = torch.empty_like(state)
    ratio = compared(token, lambda: room.copy_(state))
    return Figure(name, ratio, "times a copy into an existing tensor", bound)


def linear(grad: bool, name: str) -> Figure:
    ratio = compared(sequence(LONG, 2, grad), sequence(SHORT, 2, grad)) * SHORT / LONG
    return Figure(name, ratio, f"times that at T{SHORT}", 1.15)


def shared(grad: bool, name: str) -> Figure:
    """One head on two threads."""
    run, before = sequence(SHORT, 1, grad), isometry.get_num_threads()
    try:
        ratio = compared(on(2, run), on(1, run))
    finally:
        budget(before)
    return Figure(name, ratio, "times as long", 0.67)


def sequence(tokens: int, heads: int, grad: bool) -> Callable[[], Tensor]:
    """A forward pass, or a forward and a backward pass."""
    given = {name: t.requires_grad_(grad) for name, t in drawn(tokens, heads).items()}

    def run() -> Tensor:
        for t in given.values():
            t.grad = None
        o = ours(**given)
        if grad:
            o.backward(given["v"].detach())
        return o

    return run
