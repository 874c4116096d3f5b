"""W = exp(A), A skew with ||A|| near pi, forward and backward: one matrix, real and complex, and batches of small ones.

torch differentiates its `matrix_exp` by that of a matrix of twice the size; the other peer takes eigenvectors of the
Hermitian -i A. Flops counted: the 20.5 products of n x n matrices that both directions take for s = 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench import formulas
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Results, Row

SIZES = (190, 512)
BATCHES = ((4096, 4), (512, 16))
SPREAD = 1.5  # of the entries of A sqrt n: its norm is twice that
PRODUCTS = 20.5
# the gradient of matrix_exp loses digits at n = 512, where the cotangent is much larger than A
TOLERANCE = (2e-5, 1e-3)


def rows() -> Iterator[Row]:
    for dtype in (torch.float32, torch.complex64):
        for n in SIZES:
            yield make_row(f"exponential {n}", (n, n), dtype)
    for count, n in BATCHES:
        yield make_row(f"exponential batch {count}x{n}", (count, n, n), torch.float32)


def skew(p: Tensor) -> Tensor:
    """A from the strict upper triangle of p."""
    a = torch.triu(p, 1)
    return a - a.mH


def by_eigenvectors(p: Tensor) -> Tensor:
    """Q diag(e^{i lambda}) Q^H."""
    values, q = torch.linalg.eigh(-1j * skew(p))
    w = (q * torch.polar(torch.ones_like(values), values).unsqueeze(-2)) @ q.mH
    return w if p.is_complex() else w.real


def make_row(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Row:
    """The row of one matrix or one batch; our side reads the packed triangle, the peers a full square."""
    torch.manual_seed(0)
    n, many = shape[-1], 4 if dtype.is_complex else 1
    p, cotangent = torch.randn(*shape, dtype=dtype) * SPREAD / n**0.5, torch.randn(*shape, dtype=dtype)
    mine = formulas.packed(p).requires_grad_()

    def peer(name: str, matrix: Callable[[Tensor], Tensor]) -> Candidate:
        leaf = p.clone().requires_grad_()
        return differentiable(name, {"upper": leaf}, lambda: matrix(leaf), cotangent.conj(), {"upper": formulas.packed})

    ours = differentiable("isometry", {"upper": mine}, lambda: it.Exponential(mine).matrix(), cotangent.conj())
    return Row(
        name=f"{name}{' complex' if dtype.is_complex else ''}",
        ours=ours,
        peers=[
            peer("torch.matrix_exp", lambda p: torch.linalg.matrix_exp(skew(p))),
            peer("torch.linalg.eigh", by_eigenvectors),
        ],
        reference=lambda: reference(p, cotangent),
        bars=[Bar("torch.matrix_exp", 2.0, 4.0, ("torch.matrix_exp",)), Bar("best torch", 1.5, 2.0)],
        flops=PRODUCTS * 2.0 * many * p.numel() * n,
        tolerance=TOLERANCE,
    )


def reference(p: Tensor, cotangent: Tensor) -> Results:
    """Float64 by eigenvectors: A_bar = Q [(Q^H W_bar Q) * conj(Phi)] Q^H, Phi_jk = e^{i (l_j + l_k)/2} sinc."""
    a = skew(p.to(torch.complex128))
    values, q = torch.linalg.eigh(-1j * a)
    w = (q * torch.exp(1j * values).unsqueeze(-2)) @ q.mH
    sums, gaps = (values.unsqueeze(-1) + s * values.unsqueeze(-2) for s in (1, -1))
    phi = torch.exp(0.5j * sums) * torch.sinc(gaps / (2 * torch.pi))
    a_bar = q @ ((q.mH @ cotangent.to(torch.complex128) @ q) * phi.conj()) @ q.mH
    found = {"value": w, "gradient of upper": formulas.packed(a_bar - a_bar.mH)}
    return found if p.is_complex() else {name: value.real for name, value in found.items()}
