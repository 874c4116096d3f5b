"""W = (I + A)^{-1} (I - A) D: the scaled Cayley transform."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._objects._declaration import packed_size
from ._precision import full_precision


def skew(upper: Tensor, diagonal: Tensor | None, n: int) -> Tensor:
    """A with A[i, j] = upper (i < j, row by row), A[j, i] = -conj(A[i, j]), A[j, j] = i diagonal[j]."""
    # One gather from [upper | -conj(upper) | diagonal]: out of place, so that vmap over any argument works.
    k = upper.shape[-1]
    row, column = torch.triu_indices(n, n, 1, device=upper.device)
    places = torch.arange(k, device=upper.device)
    index = torch.empty(n, n, dtype=torch.int64, device=upper.device)
    index = index.index_put((row, column), places).index_put((column, row), places + k)
    own = torch.arange(n, device=upper.device)
    index = index.index_put((own, own), own + 2 * k)
    if diagonal is None:
        middle = upper.new_zeros((*upper.shape[:-1], n))
    else:
        middle = torch.complex(torch.zeros_like(diagonal), diagonal)
    packed = torch.cat((upper, -upper.conj(), middle), -1)
    return packed.index_select(-1, index.reshape(-1)).unflatten(-1, (n, n))


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
