"""W = F^H diag(e^{i phases}) F with the unitary discrete Fourier transform F."""

import torch
from torch import Tensor

from ._fft import inverse, transformed
from ._precision import full_precision


@full_precision
def apply(phases: Tensor, x: Tensor, adjoint: bool = False) -> Tensor:
    """Rows W x, or W^H x."""
    diagonal = torch.polar(torch.ones_like(phases), -phases if adjoint else phases)
    if phases.dim() > 1:  # a stack: an axis for the rows of each operator
        diagonal = diagonal.unsqueeze(-2)
    return inverse(transformed(x) * diagonal)


@full_precision
def matrix(phases: Tensor) -> Tensor:
    """W: its columns are W e_j."""
    n = phases.shape[-1]
    diagonal = torch.polar(torch.ones_like(phases), phases)
    eye = torch.eye(n, dtype=diagonal.dtype, device=phases.device).expand(*phases.shape[:-1], n, n)
    return apply(phases, eye).mT.contiguous()
