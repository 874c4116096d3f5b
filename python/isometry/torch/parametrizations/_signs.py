"""The signs of reflections: the sign bits on the diagonal of X, so that W is a function of X alone.

Optimisers move these entries although they have no gradient: by weight decay, or, as Muon, by an orthogonalised step.
So training resets them to 1 or -1 before many steps together can take one through zero.
"""

from typing import Any

import torch
from torch import Tensor, nn

from .._divided import of_part


def signs(x: Tensor) -> Tensor:
    """1 and -1, shape (..., k)."""
    return of_bits(x.diagonal(dim1=-2, dim2=-1).real)


def of_bits(diagonal: Tensor) -> Tensor:
    """The sign bits of real numbers, -0.0 included, as 1 and -1."""
    return torch.copysign(torch.ones_like(diagonal), diagonal)


def trained_signs(x: Tensor) -> Tensor:
    """`signs`; after `settle`, if X is a parameter whose gradient is recorded."""
    if not (isinstance(x, nn.Parameter) and x.requires_grad and torch.is_grad_enabled()):
        return signs(x.detach())
    if not torch.compiler.is_compiling():
        return settle(x)
    return signs(x.detach()) if torch.compiler.is_exporting() else _settled(x.detach())


@torch.no_grad()
def settle(x: Any) -> Tensor:
    """Make the diagonal of X 1 or -1 by its sign bits, which are returned.

    Since this changes no W, it is written past autograd, which may have saved X.
    """
    with torch.inference_mode(x.is_inference()):
        diagonal = x.data.diagonal(dim1=-2, dim2=-1).real
        found = of_bits(diagonal)
        if not x.is_cpu or not torch.equal(diagonal, found):  # a device would have to be waited for
            diagonal.copy_(found)
        return found


@torch.no_grad()
def settle_part(x: Any) -> None:
    """`settle` of the part of a divided X that this process has."""
    on_diagonal = of_part(torch.eye(*x.shape[-2:], dtype=torch.bool, device=x.device).expand(x.shape), x)
    own = x.detach().to_local().real
    own.copy_(torch.where(on_diagonal, of_bits(own), own))


@torch.library.custom_op("isometry::settled_signs", mutates_args=())
def _settled(x: Tensor) -> Tensor:
    """`settle` in a graph, which does not see that X is written: nothing depends on more than its signs."""
    return settle(x)


_settled.register_fake(signs)
