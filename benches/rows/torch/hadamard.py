"""Hadamard transforms of 10,000 rows, forward: beside a copy into an existing tensor, torch's butterflies, the dense
product, and the package fht-cpu where it is installed. n log2 n additions per row, which are no flops of a product."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

import isometry.torch as it
from harness.row import Bar, Row
from rows.torch.sides import Call, Side, row

ROWS = 10_000
SIZES = (16, 64, 256, 1024, 2048, 4096)
COPY, BUTTERFLIES, DENSE, PACKAGE = "copy", "torch butterflies", "dense product", "fht-cpu"


def transforms() -> Iterator[Row]:
    for n in SIZES:
        yield transform(n)


def transform(n: int) -> Row:
    room, result = (cache(lambda: torch.empty(ROWS, n)) for _ in range(2))
    matrix = cache(lambda: it.hadamard_transform(torch.eye(n)))
    peers: dict[str, Call | Side] = {
        COPY: Side(lambda x: room().copy_(x), {}, {}, checked=False),
        BUTTERFLIES: butterflies,
        DENSE: lambda x: x @ matrix(),
    }
    bars = [Bar(COPY, 1 / 1.5, 1.0, (COPY,)), Bar(BUTTERFLIES, 5.0, 10.0, (BUTTERFLIES,))]
    if n == SIZES[-1]:
        bars.append(Bar(DENSE, 20.0, 40.0, (DENSE,)))
    if find_spec("fht_cpu"):
        peers[PACKAGE] = lambda x: packaged(x, room())
        bars.append(Bar(PACKAGE, 1.0, 1.5, (PACKAGE,)))
    draw, ours = lambda: {"x": torch.randn(ROWS, n)}, lambda x: it.hadamard_transform(x, out=result())
    more: dict[str, Any] = {"gradients": False, "reference": butterflies, "tolerance": (1e-6, 1e-6)}
    return row(f"hadamard {ROWS} x {n}", draw, ours, peers, bars, **more)


def butterflies(x: Tensor) -> Tensor:
    """The levels one by one, as users write them."""
    n, distance = x.shape[-1], 1
    while distance < n:
        a, b = x.view(-1, n // (2 * distance), 2, distance).unbind(2)
        x = torch.stack((a + b, a - b), 2).view(-1, n)
        distance *= 2
    return x


def packaged(x: Tensor, out: Tensor) -> Tensor:
    import_module("fht_cpu").fht(x.numpy(), out=out.numpy(), num_threads=torch.get_num_threads())
    return out
