"""Arrays of the inverse maps that run in NumPy, on the host."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


def stack(w: Tensor) -> np.ndarray:
    """The matrices as an array (nb, p, q)."""
    return w.numpy(force=True).reshape(math.prod(w.shape[:-2]), *w.shape[-2:])


def unstacked(a: np.ndarray, w: Tensor, axes: int = 1) -> Tensor:
    """An argument (nb, ...) of as many axes behind the batch, as a tensor (*batch, ...) beside w."""
    return torch.from_numpy(np.ascontiguousarray(a)).reshape(*w.shape[:-2], *a.shape[a.ndim - axes :]).to(w.device)
