"""The order of derivatives that a formula has."""

from torch import Tensor


def limited(apart: Tensor, order: int) -> Tensor:
    """0 of shape (*, 1, 1) for matrices X (*, m, n) that are 0 in value, of the order of `vanishing`."""
    return vanishing(apart, order).sum((-2, -1), keepdim=True)


def vanishing(apart: Tensor, order: int) -> Tensor:
    """Zeros for numbers x that are 0 in value; derivatives are 0 up to that order, and NaN above it instead of numbers
    that would be wrong: 0 x^(order + 1/2).
    """
    if apart.is_complex():
        return vanishing(apart.real, order) + vanishing(apart.imag, order)
    return 0 * apart.pow(order + 0.5)
