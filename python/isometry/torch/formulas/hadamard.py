"""Hadamard transforms by butterflies, and W = H_n D_k ... H_n D_1."""

import torch
from torch import Tensor

from ..._objects.hadamard import ordered, paley
from ._precision import full_precision


@full_precision
def transform(x: Tensor, scale: float, adjoint: bool = False) -> Tensor:
    """Rows scale sqrt(n) H_n x, or H_n^T x."""
    n = x.shape[-1]
    p, lead = ordered("x", n), x.shape[:-1]
    y = x * scale
    if p > 1:
        h = torch.tensor(paley(p), dtype=x.dtype, device=x.device)
        y = (y.reshape(*lead, n // p, p) @ (h if adjoint else h.T)).reshape(x.shape)
    distance = p
    while distance < n:
        a, b = y.reshape(*lead, n // (2 * distance), 2, distance).unbind(-2)
        y = torch.stack((a + b, a - b), -2).reshape(x.shape)
        distance *= 2
    return y


@full_precision
def matrix(signs: Tensor) -> Tensor:
    """W, shape (..., n, n): its row i is W^T e_i."""
    return apply(signs, torch.eye(signs.shape[-1], dtype=signs.dtype, device=signs.device), adjoint=True)


@full_precision
def apply(signs: Tensor, x: Tensor, adjoint: bool = False) -> Tensor:
    """Rows W x, or W^T x."""
    scale = float(signs.shape[-1]) ** -0.5
    signs = signs if signs.dim() == 2 else signs.unsqueeze(-3)
    x = x.expand(torch.broadcast_shapes(x.shape, (*signs.shape[:-2], 1))).clone()
    if not x.numel():  # however many rounds there are
        return x + signs.sum()
    rounds = signs.unbind(-2)
    for d in reversed(rounds) if adjoint else rounds:
        x = d * transform(x, scale, True) if adjoint else transform(d * x, scale)
    return x
