"""W = (I + A)^{-1} (I - A) D: the scaled Cayley transform."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._objects._declaration import packed_size
from ._precision import full_precision
from ._skew import skew


def transform(a: Tensor) -> Tensor:
    """(I + A)^{-1} (I - A)."""
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    if a.is_cpu:
        return torch.linalg.solve(eye + a, eye - a)
    # `solve` waits for a device, to raise where a pivot is zero: here I + A is singular to rounding only.
    solution: Tensor = torch.linalg.solve_ex(eye + a, eye - a)[0]
    return solution


@full_precision
def matrix(upper: Tensor, diagonal: Tensor | None, signs: Tensor | None, phases: Tensor | None) -> Tensor:
    """W = (I + A)^{-1} (I - A) D, shape (..., n, n)."""
    w = transform(skew(upper, diagonal, packed_size("upper", upper.shape[-1])))
    if phases is not None:
        return w * torch.polar(torch.ones_like(phases), phases).unsqueeze(-2)
    return w if signs is None else w * signs.unsqueeze(-2)
