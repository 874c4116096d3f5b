"""Complex parameters as real ones: real and imaginary part in a last axis of length 2, which every optimiser and every
conversion of a module handles."""

import torch
from torch import Tensor


def paired(t: Tensor) -> Tensor:
    """The form in which a tensor is stored."""
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def unpaired(stored: Tensor) -> Tensor:
    """The complex tensor that pairs represent."""
    # An empty tensor counts as contiguous whatever its strides. NumPy's are zero, which cannot be viewed as pairs.
    pairs = stored.contiguous() if stored.numel() else stored.clone(memory_format=torch.contiguous_format)
    return torch.view_as_complex(pairs)
