"""The unitary discrete Fourier transform of rows, and its inverse.

Of no rows too, which releases of torch with MKL refuse in single precision (2.11: "Inconsistent configuration
parameters").
"""

import torch
from torch import Tensor


def transformed(x: Tensor) -> Tensor:
    """Rows F x."""
    return torch.fft.fft(x, norm="ortho") if x.numel() else _nothing(x)


def inverse(x: Tensor) -> Tensor:
    """Rows F^H x."""
    return torch.fft.ifft(x, norm="ortho") if x.numel() else _nothing(x)


def _nothing(x: Tensor) -> Tensor:
    """Without numbers, in the dtype of a transform."""
    return x.to(torch.promote_types(x.dtype, torch.complex64))
