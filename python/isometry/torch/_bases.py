"""Square bases, orthonormal in the precision in which they are used.

A base that was rounded, averaged or widened no longer is: another precision, a state of another precision, an average
of weights. What counts then is the nearest orthonormal matrix: by steps of Newton and Schulz, B <- B (3 I - B^H B) / 2,
where ||B^H B - I|| is below 1/2, as for any rounding, else by `procrustes`.
"""

# ruff: noqa: ARG002  the interface of `Plan`

from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from ._dispatch.graph import custom_operators
from ._dispatch.mode import DEVICE, KERNEL, mode
from ._dispatch.plan import Flags, Out, Plan, Results, Saved, Tensors
from ._dispatch.results import computed
from .formulas import procrustes as formula
from .formulas._precision import full_precision
from .linalg import procrustes


class Orthonormal:
    """The nearest orthonormal matrices of a base, found again when the base has changed.

    The sum of the entries shows the changes of which torch keeps no count, through `.data` or by a collective of
    torch.distributed. The storage is remembered, not the tensor: torch exchanges no tensors that have weak references.
    """

    def __init__(self) -> None:
        self._found: tuple[StorageWeakRef | None, Any, Tensor | None] = (None, None, None)

    def __reduce__(self) -> Any:
        return Orthonormal, ()

    def __call__(self, base: Tensor, dtype: torch.dtype) -> Tensor:
        """Of a base (..., n, n), in a precision of the kernels, which may be another than its own."""
        if base.is_meta:
            return base.to(dtype)
        how = mode(base)
        if how is not KERNEL and (how is not DEVICE or base.requires_grad):
            wide = base.to(dtype)
            whole = wide.reshape(-1, *wide.shape[-2:]) if wide.dim() > 3 else wide
            return computed(BASES, how, None, (), (whole,))[0].reshape(wide.shape)
        here = how is KERNEL
        state = (
            0 if base.is_inference() else base._version,
            dtype,
            (base.data_ptr(), base.sum().item()) if here else None,
        )
        now, (of, at, found) = StorageWeakRef(base.untyped_storage()), self._found
        if of is None or of.cdata != now.cdata or at != state:
            with torch.inference_mode(False), torch.no_grad():
                wide = base.to(dtype)
                found = nearest(wide) if here else _formula(wide)  # which waits for no value
                found = None if found is base else found
            self._found = now, state, found
        return base if found is None else found


@full_precision
def nearest(base: Tensor) -> Tensor:
    """The nearest orthonormal matrices of a stack (..., n, n); itself if all are, or are not finite."""
    rest, size = _rest(base)
    far = size > _least(base)
    if not far.any():
        return base
    found = base
    while (size[far] < 0.5).all():
        found = torch.where(far[..., None, None], found - found @ rest / 2, found)
        if size[far].max() ** 2 < _least(base) / 8:  # what a step leaves
            return found
        rest, size = _rest(found)
    far &= base.isfinite().all(-1).all(-1)
    found = base.clone()
    if far.any():
        found[far] = procrustes(base[far])
    return found


@torch.no_grad()
def unrounded(w: Tensor, stored: torch.dtype) -> Tensor:
    """The nearest orthonormal matrices of those that were stored in another precision; themselves where they were none
    there."""
    as_far = _least(w) * torch.finfo(stored).eps / torch.finfo(w.dtype).eps
    was = _rest(w)[1] <= as_far
    return torch.where(was[..., None, None], nearest(w), w) if bool(was.any()) else w


def _rest(base: Tensor) -> tuple[Tensor, Tensor]:
    """B^H B - I and its norm."""
    rest = base.mH @ base - torch.eye(base.shape[-1], dtype=base.dtype, device=base.device)
    return rest, torch.linalg.matrix_norm(rest)


def _least(base: Tensor) -> float:
    """The norm of B^H B - I that rounding leaves."""
    return 4 * base.shape[-1] * float(torch.finfo(base.dtype).eps)


class Bases(Plan):
    """Orthonormal bases (n, n), or a stack of them."""

    rank = 2
    operators = custom_operators("bases", "", lambda: (BASES, ()))

    def run(self, settings: Any, tensors: Tensors, saving: bool, at: Any) -> tuple[Results, Saved]:
        found = nearest(tensors[0])
        return (found.clone() if found is tensors[0] else found,), ()

    def pull(self, settings: Any, tensors: Tensors, out: Out, wanted: Flags, at: Any) -> Tensors:
        with torch.enable_grad():
            base = tensors[0].detach().requires_grad_()
            return torch.autograd.grad(_formula(base), base, out[2][0])

    def formula(self, settings: Any, *tensors: Any) -> Results:
        return (_formula(*tensors),)


BASES: Plan = Bases("Bases")


@full_precision
def _formula(base: Tensor) -> Tensor:
    near = ~(_rest(base)[1] > _least(base)) | ~base.isfinite().all(-1).all(-1)
    near = near[..., None, None]
    eye = torch.eye(base.shape[-1], dtype=base.dtype, device=base.device)
    return torch.where(near, base, formula.nearest(torch.where(near, eye, base), False))
