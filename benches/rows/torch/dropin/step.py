"""One step by `layer.step` inside `layer.cached()`.

Of one sequence, beside a call of torch.nn.RNN or torch.nn.GRU with as many units, other functions of as many numbers,
whose values are not compared; and of a batch by what `it.nn.from_torch` makes of torch's layers, beside their calls.
The values are checked against a call of the layer, or of torch's, in double precision.
"""

from collections.abc import Iterator
from contextvars import copy_context
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

import isometry.torch as it
from harness.row import Bar, Row
from rows.torch.modules import row

D, CALL = 2, "layer(x, h)"
#: The layers beside torch's, with the bar of their rows.
LAYERS = (("ORNN ScoRNN", nn.RNN, 1 / 1.5), ("EURNN ScuRNN", nn.RNN, 1 / 3), ("GRU GORU RUM", nn.GRU, 1 / 1.5))
N, BATCH, INPUTS = 256, 32, 64  # of torch's layers


def rows() -> Iterator[Row]:
    for n in (128, 512):
        for names, kind, bar in LAYERS:
            yield from (one_sequence(name, n, kind, bar) for name in names.split())
    for kind in (nn.GRU, nn.LSTM, nn.RNN):
        yield of_batch(kind)


def called(layer: Any, x: Tensor, h: Any) -> Any:
    return layer(x[None], h)[1]


def one_sequence(name: str, n: int, kind: Any, bar: float) -> Row:
    inside, theirs, peer = copy_context(), cache(lambda: kind(D, n)), f"torch.nn.{kind.__name__}"

    def draw() -> tuple[Any, ...]:
        layer = getattr(it.nn, name)(D, n)
        with torch.no_grad():
            for p in layer.parameters():
                p.add_(0.1 * torch.randn_like(p))
        inside.run(layer.cached().__enter__)
        h = torch.randn(1, 1, n, dtype=torch.complex64 if layer.is_complex else None)
        return layer, layer, torch.randn(1, D), h

    return row(
        f"step {name} {n}",
        draw,
        lambda layer, x, h: inside.run(layer.step, x, h),
        {CALL: called, peer: lambda _, x, h: called(theirs(), x, h.real.contiguous())},
        [Bar(peer, bar, 1.0, (peer,))],
        read=None,
        unchecked=(peer,),
    )


def of_batch(kind: Any) -> Row:
    inside = copy_context()

    def draw() -> tuple[Any, ...]:
        theirs = kind(INPUTS, N)
        layer: Any = it.nn.from_torch(theirs)
        inside.run(layer.cached().__enter__)
        h, c = torch.randn(2, 1, BATCH, N)
        return layer, theirs, torch.randn(BATCH, INPUTS), (h, c) if kind is nn.LSTM else h

    ours, peers = lambda layer, x, h: inside.run(layer.step, x, h), {f"torch.nn.{kind.__name__}": called}
    return row(f"from_torch {kind.__name__} step", draw, ours, peers, [Bar("torch", 1.0, 1.0)], read=None)
