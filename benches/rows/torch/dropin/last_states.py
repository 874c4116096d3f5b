"""``last_only=True`` beside ``states[-1]`` of the same layer, whose gradient torch pads with zeros to all steps: the
networks of `isometry train pixels`, forward and backward.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

import isometry.torch as it
from harness.row import Bar, Results, Row, side
from rows.torch.sides import doubled

BATCH = 50
ALL = "states[-1]"


def rows() -> Iterator[Row]:
    yield last_states("ORNN", 128, 784, reflections=16)
    yield last_states("ScoRNN", 170, 784)
    yield last_states("EURNN", 1024, 196)


def last_states(name: str, n: int, steps: int, **keywords: Any) -> Row:
    @cache
    def made() -> tuple[Any, Tensor]:
        torch.manual_seed(0)
        return getattr(it.nn, name)(1, n, **keywords), torch.rand(steps, BATCH, 1)

    def pulled(last_only: bool, wide: bool = False) -> Results:
        layer, x = made()
        if wide:
            layer, x = doubled(layer, 1, n, **keywords), x.double()
        for p in layer.parameters():
            p.grad = None
        layer.last_only = last_only
        y: Tensor = layer(x)[0] if last_only else layer(x)[0][-1]
        (y * y.conj()).real.sum().backward()
        return {"value": y.detach(), "gradient": layer.weight_ih_l0.grad}

    return Row(
        name=f"last states {name} T{steps} B{BATCH} n{n}",
        ours=side("isometry", lambda: pulled(True)),
        peers=[side(ALL, lambda: pulled(False))],
        reference=lambda: pulled(False, wide=True),
        bars=[Bar(ALL, 1.0, 1.1, (ALL,))],
        tolerance=(2e-4, 2e-3),
    )
