"""Products of reflections and nearest matrices, forward and backward, and QR factorisations, forward, of batches beside
torch.linalg.

Flops for m x k: T m k^2 + k^3 / 3, the product 2 m k^2, its gradient 5 m k^2; QR 2 k^2 (m - k / 3).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, randn

import isometry.torch as it
from harness.row import Bar, Row
from rows.torch.sides import row

PRODUCT, GEQRF, WY = "torch.linalg.householder_product", "torch.geqrf", "torch compact WY"
SIZES = ((4096, 32, 32), (256, 128, 64))  # matrices, m, k


def rows() -> Iterator[Row]:
    for count, m, k in SIZES:
        yield product(count, m, k)
    for count, m, k in SIZES:
        yield factorisation(count, m, k)
    for count, n, bar in ((20_000, 3, 10.0), (1, 512, 3.0)):
        yield nearest(count, n, bar)


def nearest(count: int, n: int, bar: float) -> Row:
    """Beside U V^H of torch's singular value decomposition, of matrices whose gradient that has too."""

    def by_svd(a: Tensor) -> Tensor:
        u, _, v = torch.linalg.svd(a)
        return u @ v

    return row(
        f"procrustes {count}x{n}x{n}",
        lambda: {"a": torch.diag_embed(torch.arange(1.0, n + 1).expand(count, n)) + 0.1 * randn(count, n, n)},
        it.linalg.procrustes,
        {"torch.linalg.svd": by_svd},
        [Bar("svd", bar, bar)],
        tolerance=(2e-5, 1e-3),
    )


def product(count: int, m: int, k: int) -> Row:
    """Of orthogonal factors, since torch's gradient divides by 1 - tau ||v||^2."""

    def draw() -> dict[str, Tensor]:
        a, tau = torch.geqrf(randn(count, m, k))
        return {"a": a, "tau": tau}

    return row(
        f"householder_product {count}x{m}x{k}",
        draw,
        it.linalg.householder_product,
        {PRODUCT: torch.linalg.householder_product, WY: wy_product},
        [Bar("householder_product", 10.0, 30.0, (PRODUCT,))],
        count * (8.0 * m * k * k + k**3 / 3),
    )


def wy_product(a: Tensor, tau: Tensor) -> Tensor:
    """E - V T V_1^H in plain torch, what one would write by hand."""
    m, k = a.shape[-2:]
    eye = torch.eye(m, k, dtype=a.dtype)
    v = a.tril(-1) + eye
    triangle = tau.unsqueeze(-1) * (v.mH @ v).triu(1)
    inner = tau.unsqueeze(-1) * v[..., :k, :].mH
    return eye - v @ torch.linalg.solve_triangular(triangle, inner, upper=True, unitriangular=True)


def factorisation(count: int, m: int, k: int) -> Row:
    return row(
        f"geqrf {count}x{m}x{k}",
        lambda: {"x": randn(count, m, k)},
        it.linalg.geqrf,
        {GEQRF: torch.geqrf},
        [Bar(GEQRF, 3.0, 10.0)],
        count * 2.0 * k * k * (m - k / 3),
        gradients=False,
        # the last columns of a square matrix are known to eps times its condition
        tolerance=(1e-3, 1e-3),
    )
