"""Marks: sequences that begin within the arrays of a layer's input, beside the same loop over the steps in torch, which
sets the state to zero where a mark stands; and beside the layer's own call without marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

import isometry.torch as it
from harness.row import Bar, Candidate, Results, Row, side
from rows.torch.sides import doubled

N, BATCH, STEPS, INPUTS, SHARE = 128, 64, 128, 32, 0.05
WITHOUT = "without marks"


def rows() -> Iterator[Row]:
    yield marked("ORNN", nonlinearity="tanh", reflections=16)
    yield marked("ScoRNN", nonlinearity="tanh")


def marked(name: str, **keywords: Any) -> Row:
    @cache
    def made() -> tuple[Any, Tensor, Tensor]:
        torch.manual_seed(0)
        layer = getattr(it.nn, name)(INPUTS, N, **keywords)
        return layer, torch.randn(STEPS, BATCH, INPUTS), torch.rand(STEPS, BATCH) < SHARE

    def pulled(call: Any, wide: bool = False) -> Results:
        layer, x, starts = made()
        layer = doubled(layer, INPUTS, N, **keywords) if wide else layer
        for p in layer.parameters():
            p.grad = None
        y = call(layer, x.double() if wide else x, starts)
        y.square().sum().backward()
        return {"value": y.detach(), "gradient": layer.weight_ih_l0.grad}

    def ours(layer: Any, x: Tensor, starts: Tensor) -> Tensor:
        y: Tensor = layer(x, starts=starts)[0]
        return y

    def without(layer: Any, x: Tensor, _: Tensor) -> Tensor:
        y: Tensor = layer(x)[0]
        return y

    def loop(layer: Any, x: Tensor, starts: Tensor) -> Tensor:
        w = layer.recurrent_matrix().mT
        drive = x @ layer.weight_ih_l0.mT + layer.bias_l0
        h, states, kept = x.new_zeros(BATCH, N), [], (~starts).to(x.dtype).unsqueeze(-1)
        for t in range(STEPS):
            h = torch.tanh((h * kept[t]) @ w + drive[t])
            states.append(h)
        return torch.stack(states)

    return Row(
        name=f"starts {name} {SHARE:.0%} of T{STEPS} B{BATCH} n{N}",
        ours=side("isometry", lambda: pulled(ours)),
        peers=[side("masked loop", lambda: pulled(loop)), Candidate(WITHOUT, lambda: pulled(without), None)],
        reference=lambda: pulled(loop, wide=True),
        bars=[Bar("loop", 4.0, 4.0, ("masked loop",)), Bar(WITHOUT, 1 / 1.1, 1.0, (WITHOUT,))],
        tolerance=(2e-4, 2e-3),
    )
