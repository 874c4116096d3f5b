"""The order of derivatives that a formula has."""

from __future__ import annotations

from torch import Tensor


def limited(apart: Tensor, order: int) -> Tensor:
    """0 of shape (*, 1, 1) for matrices X (*, m, n) that are 0 in value; its derivatives are 0 up to that order, and
    NaN above it instead of numbers that would be wrong: 0 x^(order + 1/2).
    """
    apart = apart.contiguous()
    parts = [apart.real, apart.imag] if apart.is_complex() else [apart]
    powers = [part.pow(order + 0.5).sum((-2, -1), keepdim=True) for part in parts]
    return 0 * sum(powers[1:], powers[0])
