"""Layers of torch beside what `it.nn.from_torch` makes of them: training, packed sequences, without gradients, a step.

The values, and the gradients of x and of the sum over all parameters' squares, are checked against torch's layer in
double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import copy_context
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import isometry.torch as it
from harness.row import Bar, Candidate, Results, Row, side
from rows.torch.sides import doubled

N, BATCH, STEPS, INPUTS = 256, 32, 200, 64
TOLERANCE = (1e-4, 1e-3)
KINDS: dict[str, Any] = {"GRU": nn.GRU, "LSTM": nn.LSTM, "RNN": nn.RNN}
TRAINED = {"GRU": 3.0, "LSTM": 1.3, "RNN": 2.0}
PACKED = {"GRU": 6.0, "LSTM": 4.0, "RNN": 3.0}


def rows() -> Iterator[Row]:
    for name in KINDS:
        yield trained(name, "training", bar=TRAINED[name])
        yield trained(name, "packed, both directions", bar=PACKED[name], packed=True, bidirectional=True)
        yield trained(name, "no gradients", bar=1.0, gradients=False)
        yield step(name)


def drawn(packed: bool) -> Any:
    torch.manual_seed(0)
    if not packed:
        return torch.randn(STEPS, BATCH, INPUTS)
    lengths = torch.randint(STEPS // 10, STEPS + 1, (BATCH,)).tolist()
    return pack_sequence([torch.randn(length, INPUTS) for length in lengths], enforce_sorted=False)


def output(layer: nn.Module, x: Any) -> Tensor:
    y = layer(x)[0]
    found: Tensor = y.data if isinstance(y, PackedSequence) else y
    return found


def pulled(layer: nn.Module, x: Any) -> Tensor:
    """The output, after the gradients of its sum."""
    for p in layer.parameters():
        p.grad = None
    y = output(layer, x)
    y.sum().backward()
    return y.detach()


def trained(name: str, what: str, bar: float, *, packed: bool = False, gradients: bool = True, **keywords: Any) -> Row:
    @cache
    def sides() -> tuple[nn.Module, nn.Module, Any]:
        x = drawn(packed)
        theirs = KINDS[name](INPUTS, N, **keywords)
        return it.nn.from_torch(theirs), theirs, x

    def run(i: int) -> Tensor:
        *layers, x = sides()
        if gradients:
            return pulled(layers[i], x)
        with torch.no_grad():
            return output(layers[i], x)

    def results(i: int) -> Results:
        found: Results = {"value": run(i)}
        return found | ({"gradients": norms(sides()[i])} if gradients else {})

    def reference() -> Results:
        _, theirs, x = sides()
        wide = doubled(theirs, INPUTS, N, **keywords)
        y = pulled(wide, x.double())
        return {"value": y, "gradients": norms(wide)} if gradients else {"value": y}

    return Row(
        name=f"from_torch {name} {what}",
        ours=Candidate("isometry", lambda: run(0), lambda: results(0)),
        peers=[Candidate(f"torch.nn.{name}", lambda: run(1), lambda: results(1))],
        reference=reference,
        bars=[Bar("torch", bar, bar)],
        tolerance=TOLERANCE,
    )


def norms(layer: Any) -> Tensor:
    """Of the gradients of the input's and the state's weights."""
    return torch.stack([p.grad.norm() for key, p in sorted(layer.named_parameters()) if key.startswith("weight")])


def joined(state: Any) -> Tensor:
    found: Tensor = torch.cat(state) if isinstance(state, tuple) else state
    return found


def step(name: str) -> Row:
    inside = copy_context()  # in which the layer is cached

    @cache
    def made() -> tuple[Any, nn.Module, Tensor, Any]:
        torch.manual_seed(0)
        theirs = KINDS[name](INPUTS, N)
        layer = it.nn.from_torch(theirs)
        inside.run(layer.cached().__enter__)
        h, c = torch.randn(2, 1, BATCH, N)
        return layer, theirs, torch.randn(BATCH, INPUTS), (h, c) if name == "LSTM" else h

    @torch.no_grad()
    def ours() -> Tensor:
        layer, _, x, h = made()
        return joined(inside.run(layer.step, x, h))

    @torch.no_grad()
    def called() -> Tensor:
        _, theirs, x, h = made()
        return joined(theirs(x[None], h)[1])

    @torch.no_grad()
    def reference() -> Results:
        _, theirs, x, h = made()
        wide = doubled(theirs, INPUTS, N)
        h = tuple(t.double() for t in h) if isinstance(h, tuple) else h.double()
        return {"value": joined(wide(x.double()[None], h)[1])}

    return Row(
        name=f"from_torch {name} step",
        ours=side("isometry", ours),
        peers=[side(f"torch.nn.{name}", called)],
        reference=reference,
        bars=[Bar("torch", 1.0, 1.0)],
    )
