"""W = exp(A), A skew-symmetric or skew-Hermitian."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._objects._declaration import packed_size
from ._precision import full_precision
from ._skew import skew


@full_precision
def matrix(upper: Tensor, diagonal: Tensor | None) -> Tensor:
    """W = exp(A), shape (..., n, n)."""
    w: Tensor = torch.linalg.matrix_exp(skew(upper, diagonal, packed_size("upper", upper.shape[-1])))
    return w
