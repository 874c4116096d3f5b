"""W = W_0 (x) W_1 (x) ... (x) W_{F-1}: a Kronecker product, applied factor by factor."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from ._precision import full_precision


@full_precision
def matrix(*factors: Tensor) -> Tensor:
    """W, the index of factor 0 slowest."""
    return functools.reduce(torch.kron, factors).clone()


@full_precision
def apply(*given: Any) -> Tensor:
    """Rows W x, or W^H x: x as an array (q_0, ..., q_{F-1}) is contracted along every axis, from the last one."""
    *factors, x, adjoint = given
    y, behind = x, 1
    for factor in reversed(factors):
        w = factor.mH if adjoint else factor
        y = w @ y.reshape(-1, w.shape[1], behind)
        behind *= w.shape[0]
    return y.reshape(*x.shape[:-1], behind)
