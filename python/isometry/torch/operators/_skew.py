"""Full skew matrices, packed."""

import torch
from torch import Tensor

from ..._objects._skew import not_skew
from ..._rules import check, tolerance
from .._dispatch.function import dtype_name
from .._dispatch.mode import visible
from ._operator import tensor


def packed(a: Tensor) -> tuple[Tensor, Tensor | None]:
    """upper and, of a complex matrix, diagonal of a (*, n, n), after checking it; differentiable."""
    a = tensor("a", a)
    check.square("a", tuple(a.shape))
    n = a.shape[-1]
    skew_only(a)
    a = a.view_as(a)  # an index or `.mT` of a leaf would wait for its mutex with the interpreter's lock
    row, column = torch.triu_indices(n, n, 1, device=a.device)
    return a[..., row, column], a.diagonal(dim1=-2, dim2=-1).imag if a.is_complex() else None


def skew_only(a: Tensor) -> None:
    """Refuse a matrix that is not skew, where values can be read."""
    if visible(a):
        values = a.detach()
        size = values.abs().amax((-2, -1), keepdim=True)
        if (values + values.mH).abs().gt(tolerance.skew(dtype_name(a.dtype)) * size).any():
            not_skew()
