"""Arrays of the inverse maps that run in NumPy, on the host."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._inverse import procrustes
from ..._rules import check, tolerance
from .._dispatch.function import dtype_name, threads
from ._operator import tensor


def stack(w: Tensor) -> np.ndarray:
    """The matrices as an array (nb, p, q)."""
    return w.numpy(force=True).reshape(math.prod(w.shape[:-2]), *w.shape[-2:])


def matrices(w: Tensor, nearest: bool, tol: float | None, *, special: bool = False) -> tuple[Tensor, float]:
    """Matrices w (*, n, n), and the largest entry of |W^H W - I| that is accepted; the nearest real ones with `special`
    are rotations.
    """
    w = tensor("w", w)
    check.square("w", tuple(w.shape))
    w = projected(w, nearest, special and not w.is_complex())
    return w, tolerance.unitary(tol, w.shape[-1], dtype_name(w.dtype))


def keywords(found: dict[str, np.ndarray], w: Tensor) -> dict[str, Any]:
    """The arguments (nb, ...) as keywords, tensors beside w."""
    return {name: unstacked(a, w) for name, a in found.items()}


def projected(w: Tensor, nearest: bool, special: bool = False) -> Tensor:
    """The nearest orthogonal or unitary matrices if they are asked for, with `special` rotations; else w itself."""
    if not check.flag("nearest", nearest):
        return w
    return unstacked(procrustes.nearest(np.ascontiguousarray(stack(w)), special, threads()), w)


def unstacked(a: np.ndarray, w: Tensor) -> Tensor:
    """An argument (nb, ...) as a tensor (*batch, ...) beside w."""
    return beside(a, w).reshape((*w.shape[:-2], *a.shape[1:]))


def beside(a: np.ndarray, w: Tensor) -> Tensor:
    """An array as a tensor where w is."""
    return torch.from_numpy(np.ascontiguousarray(a)).to(w.device)
