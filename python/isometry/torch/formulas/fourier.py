"""W = D3 R2 F^-1 D2 P R1 F D1: diagonals, reflections, a permutation, and Fourier transforms."""

import torch
from torch import Tensor

from ._fft import inverse, transformed
from ._precision import full_precision


def _reflected(x: Tensor, v: Tensor) -> Tensor:
    """(I - 2 v v^H / ||v||^2) x for rows x."""
    inner = (x * v.conj()).sum(-1, keepdim=True)
    return x - v * (inner * (2.0 / (v * v.conj()).real.sum(-1, keepdim=True)))


def _permuted(x: Tensor, permutation: Tensor) -> Tensor:
    """(P x)_i = x[permutation[i]] for rows x, of every operator of a stack."""
    if permutation.dim() == 1:
        return x.index_select(-1, permutation)
    return x.gather(-1, permutation.unsqueeze(-2).expand(x.shape))


@full_precision
def apply(phases: Tensor, vectors: Tensor, permutation: Tensor, x: Tensor, adjoint: bool = False) -> Tensor:
    """Rows W x, or W^H x."""
    axis = phases.dim() - 2
    if axis:  # a stack: add an axis for the rows of each operator
        phases, vectors = phases.unsqueeze(-2), vectors.unsqueeze(-2)
    first, middle, last = torch.polar(torch.ones_like(phases), -phases if adjoint else phases).unbind(axis)
    v, u = vectors.unbind(axis)
    if adjoint:
        y = transformed(_reflected(x * last, u)) * middle
        z = _reflected(_permuted(y, permutation.argsort()), v)
        return inverse(z) * first
    y = _reflected(transformed(x * first), v)
    z = inverse(_permuted(y, permutation) * middle)
    return _reflected(z, u) * last


@full_precision
def matrix(phases: Tensor, vectors: Tensor, permutation: Tensor) -> Tensor:
    """W: its columns are W e_j."""
    *batch, _, n = vectors.shape
    eye = torch.eye(n, dtype=vectors.dtype, device=vectors.device).expand(*batch, n, n)
    return apply(phases, vectors, permutation, eye).mT.contiguous()
