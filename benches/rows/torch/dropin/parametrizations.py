"""Weights under `parametrizations.orthogonal`, beside torch's own with the same base and the same trained tensor.

Flops of k reflections of R^n, forward and backward: 6 n k^2, of a square base 6 n^3, of a thin one 10 n k^2. Cayley and
exponential of n x n as in the rows of the operators.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import orthogonal

import isometry.torch as it
from harness.row import Bar, Row
from isometry.torch.parametrizations._maps import based
from rows.torch.sides import Call, row

# map, n, k -> bar and goal
WEIGHTS = {
    ("householder", 512, 512): (10.0, 14.0),
    ("cayley", 512, 512): (1.5, 2.0),
    ("matrix_exp", 512, 512): (1.0, 5.0),
    ("householder", 1024, 16): (20.0, 30.0),
    ("cayley", 1024, 16): (20.0, 100.0),
}


def rows() -> Iterator[Row]:
    for (name, n, k), bar in WEIGHTS.items():
        yield parametrised(name, n, k, bar)


def parametrised(name: str, n: int, k: int, bar: tuple[float, float]) -> Row:
    @cache
    def laws(dtype: torch.dtype) -> list[Any]:
        """The two parametrisations, torch's with the base for which the thin one stands."""
        q = torch.linalg.qr(torch.randn(n, k, dtype=torch.float64, generator=torch.Generator().manual_seed(2)))[0]
        made: list[Any] = []
        for build in (it.parametrizations.orthogonal, orthogonal):
            linear = nn.Linear(k, n, bias=False, dtype=torch.float64)
            with torch.no_grad():
                linear.weight.copy_(q)
            parametrised: Any = build(linear, "weight", name).to(dtype)
            made.append(parametrised.parametrizations.weight[0])
        if k < n:
            made[1].base = based(made[0].base, torch.eye(n, dtype=dtype))
        return made

    def call(side: int) -> Call:
        return lambda x: laws(x.dtype)[side](x)

    def draw() -> dict[str, Tensor]:
        return {"x": (0.1 * torch.randn(n, k)).tril(-1) - torch.eye(n, k)}

    flops = {"householder": 12.0 * n**3, "cayley": 12.0 * n**3, "matrix_exp": 52.0 * n**3}[name]
    peers = {f"torch parametrization, {name}": call(1)}
    return row(f"{name} weight {n}x{k}", draw, call(0), peers, [Bar("torch", *bar)], flops if n == k else 0.0)
