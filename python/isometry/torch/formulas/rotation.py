"""The rotation of one direction to another: R = H(w) H(ah), w = ah + bh normalised."""

import torch
from torch import Tensor

from ._precision import full_precision


def unit(x: Tensor) -> tuple[Tensor, Tensor]:
    """x / ||x||, and where ||x|| is a normal number; elsewhere some constant."""
    # Divided by the largest entry, whose gradient cancels since only the direction matters, no square leaves the range.
    largest = x.detach().abs().amax(-1, keepdim=True)
    x = x / torch.where(largest > 0, largest, 1)
    norm = x.square().sum(-1, keepdim=True)
    live = (norm > 0) | norm.isnan()
    length = torch.where(live, norm, 1).sqrt()
    tiny = torch.finfo(x.dtype).tiny
    return x / length, live & ((largest * length >= tiny) | norm.isnan())


def reflections(start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """Unit vectors (a, w) of the two reflections, (..., n); zeros where R = I."""
    (a, some), (b, others) = unit(start), unit(end)
    v = a + b
    norm = v.square().sum(-1, keepdim=True)
    live = norm.isnan() | (some & others if start.shape[-1] > 1 else False)
    opposite = norm.sqrt() <= 8 * torch.finfo(v.dtype).eps
    if v.shape[-1] == 2:  # where v cancels, the direction orthogonal to b - a is w up to its sign
        across = torch.stack((a[..., 1] - b[..., 1], b[..., 0] - a[..., 0]), -1)
        v = torch.where(norm < 2, across, v)
        norm = v.square().sum(-1, keepdim=True)
    w = v / torch.where(opposite, 1, norm).sqrt()
    # by pi in the plane of a and the axis on which |a| is smallest, without a gradient
    fixed = a.detach()
    axis = torch.zeros_like(fixed).scatter(-1, fixed.abs().argmin(-1, keepdim=True), 1.0)
    e = axis - (axis * fixed).sum(-1, keepdim=True) * fixed
    e = e / torch.where(live, e.square().sum(-1, keepdim=True), 1).sqrt()
    a, w = torch.where(opposite, fixed, a), torch.where(opposite, e, w)
    return torch.where(live, a, 0), torch.where(live, w, 0)


def turned_rows(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Rows H(second) H(first) x."""
    for u in (first, second):
        u = u.unsqueeze(-2)
        x = x - 2 * (x * u).sum(-1, keepdim=True) * u
    return x


@full_precision
def matrix(start: Tensor, end: Tensor) -> Tensor:
    """R, shape (..., n, n): its row i is R^T e_i."""
    a, w = reflections(start, end)
    eye = torch.eye(start.shape[-1], dtype=start.dtype, device=start.device)
    return turned_rows(eye, w, a)


@full_precision
def apply(start: Tensor, end: Tensor, x: Tensor, adjoint: bool = False) -> Tensor:
    """Rows R x, or R^T x."""
    a, w = reflections(start, end)
    flat = x.reshape(-1, x.shape[-1]) if start.dim() == 1 else x
    return turned_rows(flat, *((w, a) if adjoint else (a, w))).reshape(x.shape)
