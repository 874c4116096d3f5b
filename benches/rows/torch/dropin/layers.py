"""Layers in training, all states and their gradients.

``last_only=True`` beside ``states[-1]``, whose gradient torch pads with zeros to all steps: the networks of
`isometry train pixels`. Marks, sequences that begin within the arrays of a layer's input, beside a loop over the steps
in torch, which sets the state to zero where a mark stands, and beside the layer's own call without marks. Layers of
torch beside what `it.nn.from_torch` makes of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

import isometry.torch as it
from harness.row import Bar, Results, Row
from rows.torch.modules import row

ALL, WITHOUT, SHARE = "states[-1]", "without marks", 0.05
SHORT = (2e-4, 2e-3)
#: Steps, sequences, inputs and units of the marked layers, and of torch's.
MARKED, THEIRS = (128, 64, 32, 128), (200, 32, 64, 256)


def last_states() -> Iterator[Row]:
    for name, n, steps, keywords in (
        ("ORNN", 128, 784, {"reflections": 16}),
        ("ScoRNN", 170, 784, {}),
        ("EURNN", 1024, 196, {}),
    ):
        draw = partial(twice, name, 1, n, torch.rand, (steps, 50, 1), **keywords)
        title, bars = f"last states {name} T{steps} B50 n{n}", [Bar(ALL, 1.0, 1.1, (ALL,))]
        yield row(title, draw, partial(last, True), {ALL: partial(last, False)}, bars, tolerance=SHORT)


def twice(name: str, inputs: int, n: int, random: Any, shape: tuple[int, ...], **keywords: Any) -> tuple[Any, ...]:
    """A layer, which both sides call, and an input."""
    layer = getattr(it.nn, name)(inputs, n, **keywords)
    return layer, layer, random(shape)


def last(last_only: bool, layer: Any, x: Tensor) -> Tensor:
    layer.last_only = last_only
    states: Tensor = layer(x)[0]
    return states if last_only else states[-1]


def starts() -> Iterator[Row]:
    steps, batch, inputs, n = MARKED
    for name, keywords in (("ORNN", {"reflections": 16}), ("ScoRNN", {})):
        layer = partial(twice, name, inputs, n, torch.randn, MARKED[:3], nonlinearity="tanh", **keywords)
        yield row(
            f"starts {name} {SHARE:.0%} of T{steps} B{batch} n{n}",
            lambda layer=layer: (*layer(), torch.rand(steps, batch) < SHARE),
            lambda layer, x, starts: layer(x, starts=starts)[0],
            {"masked loop": masked, WITHOUT: lambda layer, x, _: layer(x)[0]},
            [Bar("loop", 4.0, 4.0, ("masked loop",)), Bar(WITHOUT, 1 / 1.1, 1.0, (WITHOUT,))],
            unchecked=(WITHOUT,),
            tolerance=SHORT,
        )


def masked(layer: Any, x: Tensor, starts: Tensor) -> Tensor:
    w, drive = layer.recurrent_matrix().mT, x @ layer.weight_ih_l0.mT + layer.bias_l0
    h, states, kept = torch.zeros_like(drive[0]), [], (~starts).to(x.dtype).unsqueeze(-1)
    for t in range(len(x)):
        h = torch.tanh((h * kept[t]) @ w + drive[t])
        states.append(h)
    return torch.stack(states)


def from_torch() -> Iterator[Row]:
    for kind, bar, packed in ((nn.GRU, 3.0, 6.0), (nn.LSTM, 1.3, 4.0), (nn.RNN, 2.0, 3.0)):
        yield replaced(kind, "training", bar)
        yield replaced(kind, "packed, both directions", packed, packed=True)
        yield replaced(kind, "no gradients", 1.0, gradients=False)


def replaced(kind: Any, what: str, bar: float, *, packed: bool = False, gradients: bool = True) -> Row:
    steps, batch, inputs, n = THEIRS

    def draw() -> tuple[Any, ...]:
        x: Any = torch.randn(steps, batch, inputs)
        if packed:
            lengths = torch.randint(steps // 10, steps + 1, (batch,)).tolist()
            x = pack_sequence([torch.randn(length, inputs) for length in lengths], enforce_sorted=False)
        theirs = kind(inputs, n, bidirectional=packed)
        return it.nn.from_torch(theirs), theirs, x

    name, output = kind.__name__, lambda layer, x: layer(x)[0]
    peers, bars = {f"torch.nn.{name}": output}, [Bar("torch", bar, bar)]
    read = norms if gradients else None
    return row(f"from_torch {name} {what}", draw, output, peers, bars, read=read, tolerance=(1e-4, 1e-3))


def norms(layer: Any) -> Results:
    """Of the gradients of the input's and the state's weights."""
    weights = [p for key, p in sorted(layer.named_parameters()) if key.startswith("weight")]
    return {"gradients": torch.stack([p.grad.norm() for p in weights])}
