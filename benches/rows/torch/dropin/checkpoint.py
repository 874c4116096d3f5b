"""What a checkpoint costs: the last state of a long sequence and its gradients, against the same call that keeps all
states.

Flops per pass: three products of 2 n^2 T B; what a checkpoint computes twice does not count.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, randn

import isometry.torch as it
from harness.row import Bar, Row
from rows.torch.sides import Call, row

N, BATCH, STEPS = 128, 16, 10_000
#: checkpoint, activation, and the share of the speed without a checkpoint to keep
CASES = (("sqrt", "tanh", 1 / 1.5), ("reversible", "identity", 1 / 2), ("reversible", "oplu", 1 / 2))
# through 10,000 steps
TOLERANCE = {"tanh": (2e-4, 1e-2), "identity": (2e-3, 2e-2), "oplu": (1e-3, 2e-2)}


def rows() -> Iterator[Row]:
    for checkpoint, activation, bar in CASES:
        peers = {"all states kept": last(activation, "none")}
        bars, flops = [Bar("all states kept", bar, bar)], 6.0 * N * N * BATCH * STEPS
        name, ours = f"checkpoint {checkpoint}, {activation} n{N} B{BATCH} T{STEPS}", last(activation, checkpoint)
        more: dict[str, Any] = {"fixed": ("x",), "tolerance": TOLERANCE[activation], "plan": checkpoint}
        made = row(name, draw, ours, peers, bars, flops, **more)
        # Rounding moves states across the kinks of OPLU: after so many steps float64 has other gradients, with every
        # checkpoint. The reference is then the call in float32 that keeps all states.
        results = made.peers[0].results
        yield replace(made, reference=results) if activation == "oplu" and results else made


def draw() -> dict[str, Tensor]:
    upper = 0.1 * randn(N * (N - 1) // 2)
    return {"upper": upper, "input_weight": 0.1 * randn(N, 1), "bias": torch.zeros(N), "x": randn(STEPS, BATCH, 1)}


def last(activation: str, checkpoint: str) -> Call:
    def call(upper: Tensor, input_weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
        w, given = it.Cayley(upper), {"activation": activation, "checkpoint": checkpoint, "output": "last"}
        return it.recurrence(w, x, input_weight, bias=bias, **given)  # type: ignore[arg-type]

    return call
