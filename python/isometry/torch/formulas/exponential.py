"""W = exp(A), A skew-symmetric or skew-Hermitian.

torch's squarings lose some ||A|| eps of unitarity. A step of Newton and Schulz, X + X (I - X^H X) / 2, squares the
distance and leaves a unitary matrix as it is, so that derivatives of every order are those of the exponential.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..._objects._declaration import packed_size
from ._precision import full_precision
from ._skew import skew

STEPS = 2  # unitary to rounding up to ||A|| of 1e4 in float32, 1e8 in float64


@full_precision
def matrix(upper: Tensor, diagonal: Tensor | None) -> Tensor:
    """W = exp(A), shape (..., n, n)."""
    w: Tensor = torch.linalg.matrix_exp(skew(upper, diagonal, packed_size("upper", upper.shape[-1])))
    eye = torch.eye(w.shape[-1], dtype=w.dtype, device=w.device)
    for _ in range(STEPS):
        w = w + w @ (eye - w.mH @ w) / 2
    return w
