"""W (n, n) from m reflections, forward and backward.

Flops: Gram n m^2, T^-1 m^3/3, h n m^2, W 2 n^2 m; backward 4 n^2 m + 4 n m^2. At m = n (37/3) n^3.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench import formulas
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row

WY, PRODUCT = "torch compact WY", "torch.linalg.householder_product"
SIZES = {  # (n, m): bars
    (512, 512): [Bar(WY, 1.4, 1.7, (WY,))],
    (1024, 1024): [Bar(WY, 1.4, 1.7, (WY,)), Bar("householder_product", 20.0, 40.0, (PRODUCT,))],
    (128, 16): [Bar(WY, 2.0, 3.0, (WY,))],
    (256, 32): [Bar(WY, 1.7, 2.4, (WY,))],
}


def rows() -> Iterator[Row]:
    for (n, m), bars in SIZES.items():
        yield make_row(n, m, bars)


def make_row(n: int, m: int, bars: list[Bar]) -> Row:
    """The row of one size; the operator is rebuilt in every call."""
    torch.manual_seed(0)
    u, cotangent = torch.tril(torch.randn(n, m)), torch.randn(n, n)

    def side(name: str, matrix: Callable[[Tensor], Tensor], dtype: torch.dtype = torch.float32) -> Candidate:
        leaf = u.to(dtype, copy=True).requires_grad_()
        # a peer restricted to trapezoids has no gradient above the diagonal
        pick = {"vectors": torch.tril}
        return differentiable(name, {"vectors": leaf}, lambda: matrix(leaf), cotangent.to(dtype), pick)

    peers = [side(WY, formulas.wy_matrix)]
    if any(bar.peers == (PRODUCT,) for bar in bars):
        peers.append(side(PRODUCT, formulas.householder_product))
    if importlib.util.find_spec("torch_householder"):
        peers.append(orgqr(u, cotangent))
    return Row(
        name=f"householder matrix {n}/{m}",
        ours=side("isometry", lambda vectors: it.Householder(vectors).matrix()),
        peers=peers,
        reference=side("float64", formulas.wy_matrix, torch.float64).results or dict,
        bars=bars,
        flops=6.0 * n * n * m + 6.0 * n * m * m + m**3 / 3,
    )


def orgqr(u: Tensor, cotangent: Tensor) -> Candidate:
    """torch-householder forms the first m columns only: different work, shown for comparison."""
    import torch_householder

    leaf = u.clone().requires_grad_()
    weight = cotangent[:, : u.shape[1]]

    def run() -> None:
        leaf.grad = None
        (torch_householder.torch_householder_orgqr(torch.tril(leaf)) * weight).sum().backward()

    return Candidate("torch-householder (n x m)", run, None)
