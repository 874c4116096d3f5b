"""W = D3 R2 F^-1 D2 P R1 F D1: diagonals, reflections, a permutation, and Fourier transforms."""

from __future__ import annotations

import torch
from torch import Tensor

from ._precision import full_precision


def _reflected(x: Tensor, v: Tensor) -> Tensor:
    """(I - 2 v v^H / ||v||^2) x for rows x."""
    inner = (x * v.conj()).sum(-1, keepdim=True)
    return x - v * (inner * (2.0 / (v * v.conj()).real.sum()))


@full_precision
def apply(phases: Tensor, vectors: Tensor, permutation: Tensor, x: Tensor, adjoint: bool = False) -> Tensor:
    """Rows W x, or W^H x."""
    first, middle, last = torch.polar(torch.ones_like(phases), -phases if adjoint else phases).unbind()
    if adjoint:
        y = torch.fft.fft(_reflected(x * last, vectors[1]), norm="ortho") * middle
        z = _reflected(y.index_select(-1, permutation.argsort()), vectors[0])
        return torch.fft.ifft(z, norm="ortho") * first
    y = _reflected(torch.fft.fft(x * first, norm="ortho"), vectors[0])
    z = torch.fft.ifft(y.index_select(-1, permutation) * middle, norm="ortho")
    return _reflected(z, vectors[1]) * last


@full_precision
def matrix(phases: Tensor, vectors: Tensor, permutation: Tensor) -> Tensor:
    """W, whose columns are those of the identity with W applied."""
    eye = torch.eye(vectors.shape[-1], dtype=vectors.dtype, device=vectors.device)
    return apply(phases, vectors, permutation, eye).mT.contiguous()
