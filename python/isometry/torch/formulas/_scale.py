"""Scales of tensors, constant for derivatives."""

import torch
from torch import Tensor


def scale(fixed: Tensor, dim: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """(by, size), of length 1 along dim, for a * by / size with largest entries of size 1; both 1 for zeros.

    The factors are in range where the entries are denormal numbers, whose inverses are not, or where their absolute
    values overflow.
    """
    parts = torch.maximum(fixed.real.abs(), fixed.imag.abs()) if fixed.is_complex() else fixed.abs()
    largest = parts.amax(dim, keepdim=True)
    step = 2.0 ** (64 if parts.dtype == torch.float32 else 128)
    by = torch.where(largest < 1, torch.full_like(largest, step), 1 / step)
    size = (fixed * by).abs().amax(dim, keepdim=True)
    live = size > 0
    return torch.where(live, by, 1), torch.where(live, size, 1)
