"""Products of reflections and nearest matrices, forward and backward, and QR factorisations, forward, of batches beside
torch.linalg.

Flops for m x k: T m k^2 + k^3 / 3, the product 2 m k^2, its gradient 5 m k^2; QR 2 k^2 (m - k / 3).
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, randn

import isometry.torch as it
from harness.row import Bar, Row
from isometry.torch.formulas import linalg as formulas
from rows.torch.sides import row

PRODUCT, GEQRF, WY = "torch.linalg.householder_product", "torch.geqrf", "torch compact WY"
SIZES = ((4096, 32, 32), (256, 128, 64))  # matrices, m, k


def rows() -> Iterator[Row]:
    yield from (product(*sizes) for sizes in SIZES)
    yield from (factorisation(*sizes) for sizes in SIZES)
    yield nearest(20_000, 3, 10.0)
    yield nearest(1, 512, 3.0)


def nearest(count: int, n: int, bar: float) -> Row:
    """Beside U V^H of torch's singular value decomposition, of matrices whose gradient that has too."""

    def by_svd(a: Tensor) -> Tensor:
        u, _, v = torch.linalg.svd(a)
        return u @ v

    draw = lambda: {"a": torch.diag_embed(torch.arange(1.0, n + 1).expand(count, n)) + 0.1 * randn(count, n, n)}
    peers, bars = {"torch.linalg.svd": by_svd}, [Bar("svd", bar, bar)]
    return row(f"procrustes {count}x{n}x{n}", draw, it.linalg.procrustes, peers, bars, tolerance=(2e-5, 1e-3))


def product(count: int, m: int, k: int) -> Row:
    """Of orthogonal factors, since torch's gradient divides by 1 - tau ||v||^2."""

    def draw() -> dict[str, Tensor]:
        a, tau = torch.geqrf(randn(count, m, k))
        return {"a": a, "tau": tau}

    bars = [Bar("householder_product", 10.0, 30.0, (PRODUCT,))]
    peers = {PRODUCT: torch.linalg.householder_product, WY: formulas.product}  # what one would write by hand
    name, flops = f"householder_product {count}x{m}x{k}", count * (8.0 * m * k * k + k**3 / 3)
    return row(name, draw, it.linalg.householder_product, peers, bars, flops)


def factorisation(count: int, m: int, k: int) -> Row:
    draw, flops = lambda: {"x": randn(count, m, k)}, count * 2.0 * k * k * (m - k / 3)
    peers, bars = {GEQRF: torch.geqrf}, [Bar(GEQRF, 3.0, 10.0)]
    # the last columns of a square matrix are known to eps times its condition
    more: dict[str, Any] = {"gradients": False, "tolerance": (1e-3, 1e-3)}
    return row(f"geqrf {count}x{m}x{k}", draw, it.linalg.geqrf, peers, bars, flops, **more)
