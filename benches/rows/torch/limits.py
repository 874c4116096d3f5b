"""The passes of a recurrence one by one, beside the limit of the processor: states, gradients, the steps back alone.

h_t = tanh(W h_{t-1} + V x_t) with W given and one input, so that nothing but the recurrence takes time. The states and
each of the two parts of the gradient, the steps back and the gradient of W, have one product of 2 n^2 T B.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

import isometry.torch as it
from harness.row import Results, Row, side
from rows.torch.sides import loop

#: (n, B, T): few rows and many, whole and partial vectors.
SIZES = ((190, 20, 1020), (192, 32, 1020), (512, 50, 784))
ALL, STEPS = ("w", "x", "v"), ("x",)


def rows() -> Iterator[Row]:
    for sizes in SIZES:
        for name, wanted, products in (("states", (), 1), ("gradients", ALL, 2), ("steps back", STEPS, 1)):
            yield one_pass(name, wanted, products, *sizes)


def one_pass(name: str, wanted: tuple[str, ...], products: int, n: int, batch: int, steps: int) -> Row:
    """The states, or the gradients of what is wanted, from states and cotangents that are there."""

    def given(wide: bool = False) -> tuple[dict[str, Tensor], Tensor]:
        torch.manual_seed(0)
        drawn = {"w": torch.nn.init.orthogonal_(torch.empty(n, n)), "x": torch.randn(steps, batch, 1)}
        drawn, ct = drawn | {"v": torch.randn(n, 1)}, torch.randn(steps, batch, n)
        named = {key: t.double() if wide else t for key, t in drawn.items()}
        return {key: t.requires_grad_(key in wanted) for key, t in named.items()}, ct.double() if wide else ct

    def found(call: Callable[..., Tensor], wide: bool = False) -> Callable[[], Results]:
        named, ct = given(wide)
        value = call(**named)

        def run() -> Results:
            if not wanted:
                return {"value": call(**named)}
            own: Any = torch.autograd.grad(value, [named[key] for key in wanted], ct, retain_graph=True)
            return dict(zip(wanted, own, strict=True))

        return run

    run = cache(lambda: found(lambda w, x, v: it.recurrence(it.Dense(w), x, v, activation="tanh")))
    name, flops = f"{name} n{n} B{batch} T{steps}", 2.0 * products * n * n * steps * batch
    reference = lambda: {key: t.detach() for key, t in found(textbook, wide=True)().items()}
    return Row(name, side("isometry", lambda: run()()), [], reference, flops=flops, tolerance=(1e-4, 1e-3))


def textbook(w: Tensor, x: Tensor, v: Tensor) -> Tensor:
    return loop(lambda h, a: torch.tanh(h @ w.mT + a), x @ v.mT)
