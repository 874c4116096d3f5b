"""Arrays of the inverse maps that run in NumPy, on the host."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ..._inverse import procrustes
from ..._rules import check
from .._dispatch.function import threads


def stack(w: Tensor) -> np.ndarray:
    """The matrices as an array (nb, p, q)."""
    return w.numpy(force=True).reshape(math.prod(w.shape[:-2]), *w.shape[-2:])


def projected(w: Tensor, nearest: bool, special: bool = False) -> Tensor:
    """The nearest orthogonal or unitary matrices if they are asked for, with `special` rotations; else w itself."""
    if not check.flag("nearest", nearest):
        return w
    return unstacked(procrustes.nearest(np.ascontiguousarray(stack(w)), special, threads()), w, 2)


def unstacked(a: np.ndarray, w: Tensor, axes: int = 1) -> Tensor:
    """An argument (nb, ...) of as many axes behind the batch, as a tensor (*batch, ...) beside w."""
    return torch.from_numpy(np.ascontiguousarray(a)).reshape(*w.shape[:-2], *a.shape[a.ndim - axes :]).to(w.device)
