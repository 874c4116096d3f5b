"""One step of one sequence by `layer.step` inside `layer.cached()`, beside a call of torch.nn.RNN or torch.nn.GRU with
as many units: other functions of as many numbers, so that their values are not compared.

The values are checked against the same step in torch operations, in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import copy_context
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

import isometry.torch as it
from harness.row import Bar, Candidate, Results, Row, side
from isometry.torch.formulas import activation
from rows.torch.sides import doubled

D = 2
RNN, GRU, CALL = "torch.nn.RNN", "torch.nn.GRU", "layer(x, h)"
TWO_THIRDS, THIRD = 1 / 1.5, 1 / 3


def rows() -> Iterator[Row]:
    for n in (128, 512):
        for name, bar in (("ORNN", TWO_THIRDS), ("ScoRNN", TWO_THIRDS), ("EURNN", THIRD), ("ScuRNN", THIRD)):
            yield step(name, n, RNN, [Bar(RNN, bar, 1.0, (RNN,))])
        for name in ("GRU", "GORU", "RUM"):
            yield step(name, n, GRU, [Bar(GRU, TWO_THIRDS, 1.0, (GRU,))])


def step(name: str, n: int, peer: str, bars: list[Bar]) -> Row:
    inside = copy_context()  # in which the layer is cached

    @cache
    def made() -> tuple[Any, Tensor, Tensor]:
        torch.manual_seed(0)
        layer = getattr(it.nn, name)(D, n)
        with torch.no_grad():
            for p in layer.parameters():
                p.add_(0.1 * torch.randn_like(p))
        inside.run(layer.cached().__enter__)
        return layer, torch.randn(1, D), torch.randn(1, 1, n, dtype=torch.complex64 if layer.is_complex else None)

    @torch.no_grad()
    def ours() -> Tensor:
        layer, x, h = made()
        return inside.run(layer.step, x, h)

    @cache
    def theirs() -> nn.Module:
        return nn.GRU(D, n) if peer == GRU else nn.RNN(D, n)

    @torch.no_grad()
    def call() -> Any:
        _, x, h = made()
        return theirs()(x[None], h.real.contiguous())

    @torch.no_grad()
    def called() -> Tensor:
        layer, x, h = made()
        last: Tensor = layer(x[None], h)[1]
        return last

    return Row(
        name=f"step {name} {n}",
        ours=side("isometry", ours),
        peers=[Candidate(peer, call, None), side(CALL, called)],
        reference=partial(_reference, made),
        bars=bars,
    )


@torch.no_grad()
def _reference(made: Any) -> Results:
    """The step of a plain layer in torch operations, that of a gated layer as a call of the layer."""
    layer, x, h = made()
    wide = doubled(layer, D, layer.hidden_size)
    wide_h = h.to(torch.complex128 if layer.is_complex else torch.float64)
    if not hasattr(wide, "slope"):
        return {"value": wide(x.double()[None], wide_h)[1]}
    z = wide_h @ wide.recurrent_matrix().mT + x.to(wide_h.dtype) @ wide._value("weight_ih_l0").mT
    modrelu = wide.nonlinearity == "modrelu"
    z, bias = (z, wide.activation_bias_l0) if modrelu else (z + wide._value("bias_l0"), None)
    return {"value": activation.activate(z, wide.nonlinearity, bias, wide.slope)}
