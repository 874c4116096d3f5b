"""The activations by name; the table is in docs/math/recurrence.md."""

import math
from collections.abc import Callable

import torch
from torch import Tensor


def _lost(h: Tensor, lost: Tensor) -> Tensor:
    """h; where `lost`, it and all its derivatives are NaN."""
    if h.is_complex():
        return torch.complex(_lost(h.real, lost), _lost(h.imag, lost))
    return h * torch.ones_like(h).masked_fill(lost, math.nan)


def _oplu(z: Tensor, halves: bool) -> Tensor:
    """(max, min) of each pair; a tie counts as ordered."""
    n = z.shape[-1]
    a, b = z.split(n // 2, -1) if halves else z.unflatten(-1, (n // 2, 2)).unbind(-1)
    lost = a.isnan() | b.isnan()
    a, b = _lost(a, lost), _lost(b, lost)
    swap = b > a
    high, low = torch.where(swap, b, a), torch.where(swap, a, b)
    return torch.cat((high, low), -1) if halves else torch.stack((high, low), -1).flatten(-2)


def _modrelu(z: Tensor, bias: Tensor) -> Tensor:
    """(|z| + b) z / |z| where |z| + b > 0 and z != 0, else 0; NaN of z or b stays."""
    lost = (z.abs() + bias).isnan()
    z, bias = _lost(z, lost), _lost(bias.expand(lost.shape), lost)
    # denormal numbers too, as in the kernels: their inverses overflow
    zero = z.abs() < torch.finfo(z.dtype).tiny
    # z / |z| is formed at 1 instead of 0, so that no derivative of the branch not taken is NaN.
    safe = torch.where(zero, torch.ones_like(z), z)
    # With e = z / |z| the cotangent of the bias is Re(conj(e) f_bar), which does not depend on |z|.
    size = safe.abs()
    unit = safe / size if z.is_complex() else safe.sign()
    off = zero | (size + bias <= 0)
    bias = bias.masked_fill(off, 0)  # -inf closes a unit
    return torch.where(off, torch.zeros_like(z), safe + bias * unit)


def _modrelu_realrep(z: Tensor, bias: Tensor) -> Tensor:
    """modReLU of a[:n] + i a[n:]."""
    a, b = z.split(z.shape[-1] // 2, -1)
    lost = (a - a + b - b + bias).isnan()  # an infinite number has no direction
    a, b, bias = _lost(a, lost), _lost(b, lost), _lost(bias.expand(lost.shape), lost)
    zero = torch.hypot(a, b) < torch.finfo(z.dtype).tiny
    safe, b = torch.where(zero, torch.ones_like(a), a), torch.where(zero, torch.zeros_like(b), b)
    size = torch.hypot(safe, b)
    off = zero | (size + bias <= 0)
    bias = bias.masked_fill(off, 0)
    parts = [torch.where(off, torch.zeros_like(part), part + bias * (part / size)) for part in (safe, b)]
    return torch.cat(parts, -1)


def activate(z: Tensor, name: str, bias: Tensor | None = None, slope: float = 0.1) -> Tensor:
    """The activation of that name."""
    if name == "identity":
        return z.clone()
    if name == "modrelu":
        assert bias is not None
        return _modrelu(z, bias)
    if z.is_complex():
        # gradients of z.real and z.imag are added as complex numbers, which spreads NaN of one to the other
        parts = torch.view_as_real(z.resolve_conj()).unbind(-1)
        return torch.complex(*(activate(part, name, bias, slope) for part in parts))
    if name == "modrelu_realrep":
        assert bias is not None
        return _modrelu_realrep(z, bias)
    if name in ("oplu", "oplu_halves"):
        return _oplu(z, name == "oplu_halves")
    elementwise: dict[str, Callable[[Tensor], Tensor]] = {
        "tanh": torch.tanh,
        "relu": torch.relu,
        "leaky_relu": lambda z: torch.where(z > 0, z, slope * z),
    }
    h = elementwise[name](z)
    return h if name == "tanh" else _lost(h, h.isnan())
