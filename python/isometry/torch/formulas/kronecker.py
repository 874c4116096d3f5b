"""W = W_0 (x) W_1 (x) ... (x) W_{F-1}: a Kronecker product, applied factor by factor."""

import functools
import math
from typing import Any

from torch import Tensor

from ._precision import full_precision


@full_precision
def matrix(*factors: Tensor) -> Tensor:
    """W, the index of factor 0 slowest."""
    return functools.reduce(_kron, factors).clone()


def _kron(a: Tensor, b: Tensor) -> Tensor:
    """The product of two factors, or of two stacks of them; `torch.kron` takes the axis of a stack for one of W."""
    product = a[..., :, None, :, None] * b[..., None, :, None, :]
    return product.reshape(*a.shape[:-2], a.shape[-2] * b.shape[-2], a.shape[-1] * b.shape[-1])


@full_precision
def apply(*given: Any) -> Tensor:
    """Rows W x, or W^H x: x as an array (q_0, ..., q_{F-1}) is contracted along every axis, from the last one."""
    *factors, x, adjoint = given
    # The axes before that of a factor are the rows of a product.
    y, rows, behind = x, math.prod(x.shape[factors[0].dim() - 2 :]), 1
    for factor in reversed(factors):
        w = factor.mH if adjoint else factor
        *batch, p, q = w.shape
        rows //= q
        y = w.unsqueeze(-3) @ y.reshape(*batch, rows, q, behind)
        behind *= p
    return y.reshape(*x.shape[:-1], behind)
