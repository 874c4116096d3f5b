"""The delta rule beside what bounds it: a copy of the state, linear time, and the memory of a step of autograd."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

import isometry.torch as it
from harness.figure import Figure, Later, peak
from harness.row import Row
from harness.timing import alternate

SECONDS, WIDTH = 2.0, 128
#: The lengths whose time per token is compared, of two heads.
SHORT, LONG = 4096, 65_536


def figures(token: Row, training: Row) -> Iterator[Later]:
    """`token` computes one token, `training` a forward and a backward pass, beside "with unbind"."""
    yield Later("one token, beside a copy of the state", partial(beside_a_copy, token))
    for grad in (False, True):
        kind = "forward and backward" if grad else "forward"
        yield Later(f"{kind}, time per token at T{LONG}", partial(linear, grad))
    yield Later("peak memory of " + training.name, partial(peak, training, "with unbind", 0.25))


def compared(first: Callable[[], object], second: Callable[[], object]) -> float:
    """The time of the first call in units of the second."""
    samples = alternate({"first": first, "second": second}, SECONDS)
    return statistics.median(samples["first"]) / statistics.median(samples["second"])


def beside_a_copy(token: Row, name: str) -> Figure:
    state = torch.randn(1, 16, WIDTH, WIDTH)
    room = torch.empty_like(state)
    ratio = compared(token.ours.run, lambda: room.copy_(state))
    return Figure(name, ratio, "times a copy into an existing tensor", 1.5)


def linear(grad: bool, name: str) -> Figure:
    def call(tokens: int) -> Callable[[], object]:
        q, k, v = torch.randn(3, 1, tokens, 2, WIDTH).unbind()
        g, beta = -torch.rand(1, tokens, 2), torch.rand(1, tokens, 2)
        given = [t.requires_grad_(grad) for t in (q, torch.nn.functional.normalize(k, dim=-1), v, beta, g)]

        def run() -> Tensor:
            for t in given:
                t.grad = None
            o, _ = it.delta_rule(*given[:4], g=given[4])
            if grad:
                o.backward(v)
            return o

        return run

    ratio = compared(call(LONG), call(SHORT)) * SHORT / LONG
    return Figure(name, ratio, f"times that at T{SHORT}", 1.15)
