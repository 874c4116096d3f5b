"""Results in tensors of the caller, as torch's `out=`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..._rules import check
from .._dispatch.function import dtype_name


def written(out: Sequence[Tensor], found: Sequence[Tensor], given: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """`out`, with the results that were found from the given tensors; an empty tensor gets their shape."""
    if not isinstance(out, tuple | list) or len(out) != len(found):
        raise TypeError(f"out must be a tuple of {len(found)} tensors")
    for t, result in zip(out, found, strict=True):
        if not isinstance(t, Tensor):
            check.kind("out", "a torch.Tensor", t)
        if t.device != result.device:
            raise RuntimeError(f"out must be on the device {result.device}, not {t.device}")
        if not torch.can_cast(result.dtype, t.dtype):
            raise TypeError(f"out must be of a dtype that holds {dtype_name(result.dtype)}, not {dtype_name(t.dtype)}")
        if t.numel():
            check.exact("out", tuple(t.shape), tuple(result.shape))
    if torch.is_grad_enabled() and any(t.requires_grad for t in (*given, *out)):
        raise RuntimeError("out must be None where a gradient is recorded")
    for t, result in zip(out, found, strict=True):
        if t.shape != result.shape:
            t.resize_(result.shape)
        t.copy_(result)
    return tuple(out)
