"""Adapters, the turn of the inputs alone: OFT and HRA beside PEFT's formulas, written out, and beside plain torch.

Flops forward and backward: OFT 6 n b per row and 7 n b^2 for the blocks, HRA 12 n r per row.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, randn

from harness.figure import Figure, Later, peak
from harness.row import Bar, Row
from isometry.torch.adapters.hra import reflections
from isometry.torch.adapters.oft import rotations, turned
from rows.torch import formulas
from rows.torch.sides import row

TOKENS = 512
BLOCKS, B = 128, 32
N, R = 1024, 8
SERIES, SOLVE = "PEFT OFT (series)", "torch.linalg.solve, bmm"
LOOP, WY = "PEFT HRA (loop)", "torch compact WY"
QUARTER = 0.25


def rows(alone: bool = False) -> Iterator[Row | Later]:
    yield oft()
    yield Later("OFT, max|R'R - I| at ||A|| = 0.5", orthogonality)
    yield hra()
    if not alone:
        yield Later(f"HRA {N}/{R}/B{TOKENS}, peak memory", lambda name: peak(hra(), LOOP, QUARTER, name))


def oft() -> Row:
    # small angles, for which the series has converged
    draw = lambda: {"upper": 1e-3 * randn(BLOCKS, B * (B - 1) // 2), "x": randn(TOKENS, BLOCKS * B)}
    peers = {SOLVE: oft_by_solve, SERIES: oft_of_peft}
    bars = [Bar("PEFT", 2.0, 2.5, (SERIES,)), Bar("best torch", 1.5, 2.0)]
    ours, flops = lambda upper, x: turned(rotations(upper), x), 6.0 * TOKENS * BLOCKS * B * B + 7.0 * BLOCKS * B**3
    return row(f"OFT {BLOCKS}x{B}/B{TOKENS}", draw, ours, peers, bars, flops)


def hra() -> Row:
    draw, ours = lambda: {"vectors": randn(N, R), "x": randn(TOKENS, N)}, lambda u, x: reflections(u).apply(x)
    peers = {WY: formulas.wy_apply, LOOP: hra_of_peft}
    bars = [Bar("PEFT", 3.0, 10.0, (LOOP,)), Bar("compact WY", 1.5, 2.0, (WY,))]
    return row(f"HRA {N}/{R}/B{TOKENS}", draw, ours, peers, bars, 12.0 * TOKENS * N * R)


def skew(upper: Tensor) -> Tensor:
    """The blocks of A, as PEFT writes them."""
    a = upper.new_zeros(len(upper), B, B)
    i, j = torch.triu_indices(B, B, 1)
    a[:, i, j] = upper
    return a - a.mT


def series(upper: Tensor) -> Tensor:
    """I + 2 A + 2 A^2 + 2 A^3 + A^4: PEFT's default for (I + A)(I - A)^{-1}, in its operations."""
    a = skew(upper)
    r = torch.eye(B, dtype=a.dtype).repeat(len(a), 1, 1)
    r.add_(a, alpha=2.0)
    power = torch.bmm(a, a)
    r.add_(power, alpha=2.0)
    power = torch.bmm(power, a)
    r.add_(power, alpha=2.0)
    return r.add_(torch.bmm(power, a))


def oft_of_peft(upper: Tensor, x: Tensor) -> Tensor:
    blocked = x.reshape(TOKENS, BLOCKS, B)
    return torch.einsum("...rk,rkc->...rc", blocked, series(upper)).reshape(x.shape)


def oft_by_solve(upper: Tensor, x: Tensor) -> Tensor:
    a, eye = skew(upper), torch.eye(B, dtype=upper.dtype)
    blocked = x.view(TOKENS, BLOCKS, B).transpose(0, 1)
    return torch.bmm(blocked, torch.linalg.solve(eye - a, eye + a)).transpose(0, 1).reshape(x.shape)


def hra_of_peft(vectors: Tensor, x: Tensor) -> Tensor:
    """The n x n matrix, one reflection after the other."""
    u = vectors / vectors.norm(dim=0)
    weight = torch.eye(len(u), dtype=u.dtype)
    for i in range(u.shape[1]):
        column = u[:, i].view(-1, 1)
        weight = weight - 2 * weight @ column @ column.t()
    return x @ weight.t()


def orthogonality(name: str) -> Figure:
    """In float32, of our blocks and of PEFT's."""
    upper = randn(BLOCKS, B * (B - 1) // 2, generator=torch.Generator().manual_seed(0))
    upper = 0.5 * upper / torch.linalg.matrix_norm(skew(upper), 2)[:, None]
    ours, theirs = (off(make(upper)) for make in (rotations, series))
    return Figure(name, 1e5 * ours, f"1e-5 (PEFT: {1e5 * theirs:.0f})", 1.0, {"PEFT": theirs})


def off(r: Tensor) -> float:
    wide = r.double()
    return (wide.mT @ wide - torch.eye(B, dtype=torch.float64)).abs().max().item()
