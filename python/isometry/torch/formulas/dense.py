"""W = weight."""

import torch
from torch import Tensor

from ._precision import full_precision


def matrix(weight: Tensor) -> Tensor:
    """A copy: no result shares memory with an argument."""
    return weight.clone(memory_format=torch.contiguous_format)


@full_precision
def apply(weight: Tensor, x: Tensor, adjoint: bool = False) -> Tensor:
    """Rows W x, or W^H x."""
    return x @ (weight.conj() if adjoint else weight.mT)
