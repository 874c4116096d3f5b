"""The delta rule beside what bounds it: a copy of the state, linear time, and the memory of a step of autograd."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

import isometry
import isometry.torch as it
from harness.cores import budget, on
from harness.figure import Figure, Later, peak
from harness.row import Row
from harness.timing import alternate

SECONDS, WIDTH = 2.0, 128
#: The lengths whose time per token is compared, of two heads.
SHORT, LONG = 4096, 65_536


def figures(token: Row, training: Row) -> Iterator[Later]:
    """`token` computes one token, `training` a forward and a backward pass, beside "with unbind"."""
    yield Later("one token, beside a copy of the state", partial(beside_a_copy, token.ours.run, 1.5))
    yield Later("one token in place, beside a copy of the state", partial(beside_a_copy, in_place(), 3.0))
    for grad in (False, True):
        kind = "forward and backward" if grad else "forward"
        yield Later(f"{kind}, time per token at T{LONG}", partial(linear, grad))
        yield Later(f"one head T{SHORT}, {kind}, two threads in units of one", partial(shared, grad))
    yield Later("peak memory of " + training.name, partial(peak, training, "with unbind", 0.25))


def compared(first: Callable[[], object], second: Callable[[], object]) -> float:
    """The time of the first call in units of the second."""
    samples = alternate({"first": first, "second": second}, SECONDS)
    return statistics.median(samples["first"]) / statistics.median(samples["second"])


def in_place() -> Callable[[], Tensor]:
    """One token that changes its state."""
    q, k, v = torch.randn(3, 1, 1, 16, WIDTH).unbind()
    g, beta = -0.5 * torch.rand(1, 1, 16), torch.rand(1, 1, 16)
    k, state = torch.nn.functional.normalize(k, dim=-1), torch.randn(1, 16, WIDTH, WIDTH)

    @torch.no_grad()
    def run() -> Tensor:
        return it.delta_rule(q, k, v, beta, g=g, initial_state=state, out_state=state)[0]

    return run


def beside_a_copy(token: Callable[[], object], bound: float, name: str) -> Figure:
    state = torch.randn(1, 16, WIDTH, WIDTH)
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
    q, k, v = torch.randn(3, 1, tokens, heads, WIDTH).unbind()
    g, beta = -torch.rand(1, tokens, heads), torch.rand(1, tokens, heads)
    given = [t.requires_grad_(grad) for t in (q, torch.nn.functional.normalize(k, dim=-1), v, beta, g)]

    def run() -> Tensor:
        for t in given:
            t.grad = None
        o, _ = it.delta_rule(*given[:4], g=given[4])
        if grad:
            o.backward(v)
        return o

    return run
