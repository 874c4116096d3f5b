"""A skew-symmetric or skew-Hermitian matrix from its packed triangle."""

import torch
from torch import Tensor


def skew(upper: Tensor, diagonal: Tensor | None, n: int) -> Tensor:
    """A with A[i, j] = upper (i < j, row by row), A[j, i] = -conj(A[i, j]), A[j, j] = i diagonal[j]."""
    # One gather from [upper | -conj(upper) | diagonal]: out of place, so that vmap over any argument works.
    k = upper.shape[-1]
    row, column = torch.triu_indices(n, n, 1, device=upper.device)
    places = torch.arange(k, device=upper.device)
    index = torch.empty(n, n, dtype=torch.int64, device=upper.device)
    index = index.index_put((row, column), places).index_put((column, row), places + k)
    own = torch.arange(n, device=upper.device)
    index = index.index_put((own, own), own + 2 * k)
    if diagonal is None:
        middle = upper.new_zeros((*upper.shape[:-1], n))
    else:
        middle = torch.complex(torch.zeros_like(diagonal), diagonal)
    packed = torch.cat((upper, -upper.conj(), middle), -1)
    return packed.index_select(-1, index.reshape(-1)).unflatten(-1, (n, n))
