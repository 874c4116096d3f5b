"""Unit quaternions (x, y, z, w) of rotations of space, as in the NumPy interface, differentiable.

Lengths are those of vectors divided by a number that is held constant, since results do not depend on it; at zero they
are series, whose errors are of the order of eps^(3/2), and whose derivatives are right up to order 5.
"""

import torch
from torch import Tensor

from ..._objects import _skew
from ..._rules import check
from .._dispatch.function import dtype_name
from .._dispatch.mode import visible
from ._operator import tensor


def parts(quat: Tensor, scalar_first: bool) -> tuple[Tensor, Tensor]:
    """v (*, 3) and w >= 0 (*, 1), divided by the largest entry."""
    q, scalar_first = tensor("quat", quat), check.flag("scalar_first", scalar_first)
    _skew.quat(tuple(q.shape), dtype_name(q.dtype))
    largest = q.detach().abs().amax(-1, keepdim=True)
    if visible(q) and (largest == 0).any():
        _skew.no_quaternion()
    q = q / largest
    v, w = (q[..., 1:], q[..., :1]) if scalar_first else (q[..., :3], q[..., 3:])
    sign = _sign(w)
    return v * sign, w * sign


def rodrigues(v: Tensor, w: Tensor) -> Tensor:
    """v / w, tan(angle / 2) times the axis."""
    by = w.detach().reciprocal()
    if visible(v) and (by.isinf() | (v.detach() * by).isinf()).any():
        _skew.half_turn("quat")
    # no product of two numbers that may be huge, in the gradient either
    return (v * by) / (w * by)


def rotvec(v: Tensor, w: Tensor) -> Tensor:
    """2 atan(|v| / w) / |v| v, the angle times the axis."""
    square = v.square().sum(-1, keepdim=True)
    small = square < _least(v) * w.square()
    size, by = torch.where(small, 1, square).sqrt(), torch.where(small, w, 1)
    ratio = square / by.square()
    # 2 atan(x) / x = 2 - 2 x^2 / 3 + 2 x^4 / 5 - ...
    series = (2 - ratio * (2 / 3) + ratio.square() * (2 / 5)) / by
    return v * torch.where(small, series, 2 * torch.atan2(size, w) / size)


def of_rodrigues(g: Tensor, scalar_first: bool) -> Tensor:
    """(g, 1), divided by its length."""
    largest = g.detach().abs().amax(-1, keepdim=True).clamp(min=1)
    return _joined(g / largest, largest.reciprocal(), scalar_first)


def of_rotvec(r: Tensor, scalar_first: bool) -> Tensor:
    """(sin(|r| / 2) r / |r|, cos(|r| / 2)), or its negative."""
    largest = r.detach().abs().amax(-1, keepdim=True).clamp(min=1)
    square = (r / largest).square().sum(-1, keepdim=True)
    small = (square < _least(r)) & (largest == 1)
    size = torch.where(small, 1, square).sqrt() * largest
    # sin(t / 2) / t = 1/2 - t^2 / 48 + t^4 / 3840 - ..., cos(t / 2) = 1 - t^2 / 8 + t^4 / 384 - ...
    v = r * torch.where(small, 0.5 - square / 48 + square.square() / 3840, (size / 2).sin() / size)
    w = torch.where(small, 1 - square / 8 + square.square() / 384, (size / 2).cos())
    sign = _sign(w)
    return _joined(v * sign, w * sign, scalar_first)


def _least(t: Tensor) -> float:
    """Squares below it are small."""
    return float(torch.finfo(t.dtype).eps ** 0.5)


def _sign(w: Tensor) -> Tensor:
    return torch.where(w.detach() < 0, -1, 1)


def _joined(v: Tensor, w: Tensor, scalar_first: bool) -> Tensor:
    q = torch.cat((v, w), -1)
    q = q / torch.linalg.vector_norm(q, dim=-1, keepdim=True)
    return q.roll(1, -1) if check.flag("scalar_first", scalar_first) else q
