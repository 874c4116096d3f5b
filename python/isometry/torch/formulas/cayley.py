"""W = (I + A)^{-1} (I - A) D: the scaled Cayley transform.

On the CPU the kernel computes the values in every mode, since LAPACK's batched solves depend on threads. Derivatives
come from a series around them: with A_0, W_0 the values of A and W, constant for differentiation, and X = A - A_0,
which is zero in value,

    2 S_0 = I + W_0,     Z = X S_0,     W = 2 (I + A_0 + X)^{-1} - I = W_0 + 2 S_0 (-Z + Z^2 - Z^3 + ...).

Z^k contributes to derivatives from order k on, so the sum up to Z^7 gives all of them up to order 7; those above
are NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ... import _core
from ..._objects._declaration import packed_size
from .._dispatch.function import empty, readable, threads
from ._order import limited
from ._precision import full_precision
from ._skew import skew
from ._solve import solve

DOUBLINGS = 2
ORDER = 2 ** (DOUBLINGS + 1) - 1  # of the last power in the sum


@torch.library.custom_op("isometry::cayley_values", mutates_args=(), device_types="cpu")
def _values(upper: Tensor, diagonal: Tensor | None) -> Tensor:
    """(I + A)^{-1} (I - A) by the kernel, shape (..., n, n), n > 1; not differentiable."""
    batch, n = upper.shape[:-1], packed_size("upper", upper.shape[-1])
    out, w = empty((*batch, n, n), upper.dtype, batch.numel(), n, n)
    if batch.numel():
        own = readable(upper.reshape(-1, upper.shape[-1]))
        imaginary = None if diagonal is None else readable(diagonal.reshape(-1, n))
        _core.operator_matrix("cayley", (own, imaginary, None, None), w, False, threads())
    return out


@_values.register_fake
def _(upper: Tensor, _diagonal: Tensor | None) -> Tensor:
    n = packed_size("upper", upper.shape[-1])
    return upper.new_empty((*upper.shape[:-1], n, n))


@_values.register_vmap
def _(info: object, dims: tuple[int | None, ...], upper: Tensor, diagonal: Tensor | None) -> tuple[Tensor, int]:
    size: int = info.batch_size  # type: ignore[attr-defined]

    def leading(t: Tensor, dim: int | None) -> Tensor:
        return t.expand(size, *t.shape) if dim is None else t.movedim(dim, 0)

    return _values(leading(upper, dims[0]), None if diagonal is None else leading(diagonal, dims[1])), 0


def transform(upper: Tensor, diagonal: Tensor | None) -> Tensor:
    """(I + A)^{-1} (I - A)."""
    n = packed_size("upper", upper.shape[-1])
    a = skew(upper, diagonal, n)
    eye = torch.eye(n, dtype=a.dtype, device=a.device)
    if n == 1:
        return (1 - a) / (1 + a)
    if not a.is_cpu:
        return solve(eye + a, eye - a)  # I + A is singular at most to rounding
    fixed = upper.detach(), None if diagonal is None else diagonal.detach()
    w = _values(*fixed)
    twice = eye + w
    apart = a - skew(*fixed, n)
    power = apart @ twice / 2
    series = -power
    for _ in range(DOUBLINGS):
        power = power @ power
        series = series + power + series @ power
    return w + twice @ series + limited(apart, ORDER)


@full_precision
def matrix(upper: Tensor, diagonal: Tensor | None, signs: Tensor | None, phases: Tensor | None) -> Tensor:
    """W = (I + A)^{-1} (I - A) D, shape (..., n, n)."""
    w = transform(upper, diagonal)
    if phases is not None:
        return w * torch.polar(torch.ones_like(phases), phases).unsqueeze(-2)
    return w if signs is None else w * signs.unsqueeze(-2)
