"""Reflection vectors as parameters: H(u) = I - 2 u u^H / ||u||^2 depends only on the direction of u.

Where the gradient is zero, weight decay shortens u without turning it, until its squared norm leaves the range of the
type. An operator refuses such vectors; a layer scales them, which changes no reflection.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..._objects._declaration import Argument
from .._dispatch.mode import visible

Operator = TypeVar("Operator")


def reflecting(make: Callable[[Tensor], Operator], vectors: Tensor, scale: Callable[[Tensor], Tensor]) -> Operator:
    """``make(vectors)``, with scaled vectors if it refuses these, or if their values cannot be read."""
    if visible(vectors):
        try:
            return make(vectors)
        except ValueError:  # raised again below if there is another reason
            pass
    return make(scale(vectors))


def built(make: Callable[..., Operator], arguments: Sequence[Argument], values: Sequence[Any]) -> Operator:
    """``make(*values)`` for tensors and sizes of these arguments, with `reflecting` if vectors are among them."""
    for i, (argument, u) in enumerate(zip(arguments, values, strict=True)):
        if argument.name == "vectors" and u is not None:
            axis = argument.axes.split().index("n") - argument.rank
            with_vectors = lambda u, i=i: make(*values[:i], u, *values[i + 1 :])
            return reflecting(with_vectors, u, partial(scaled, axis=axis))
    return make(*values)


def signed(vectors: Tensor, sign: Any) -> Tensor:
    """The square trapezoid of n - 1 vectors, with the sign at the end of its last column."""
    last = vectors.new_zeros(*vectors.shape[:-1], 1)
    last[..., -1, 0] = sign
    return torch.cat((vectors, last), -1)


def scaled(vectors: Tensor, axis: int = -2) -> Tensor:
    """Vectors along the axis, scaled so that the largest part lies in [1, 2); for u = 0, which has no direction, u + e
    with the last unit vector e, so that u can be trained.
    """
    parts = torch.view_as_real(vectors) if vectors.is_complex() else vectors.unsqueeze(-1)
    largest = parts.detach().abs().amax((-1, axis - 1), keepdim=True).squeeze(-1)
    most = math.floor(math.log2(torch.finfo(largest.dtype).max)) - 1
    scale = torch.exp2(-torch.log2(largest).floor().clamp(-most, most))
    n = vectors.shape[axis]
    last = (torch.arange(n, device=vectors.device) == n - 1).to(vectors.dtype)
    return torch.where(largest > 0, vectors * scale, vectors + last.reshape(n, *[1] * (-1 - axis)))


def trapezoidal(u: Tensor) -> Tensor:
    """`scaled` columns of a trapezoid, except for the n-th, which is not a reflection vector."""
    lower, n = u.tril(), u.shape[-2]
    return torch.cat((scaled(lower[..., : n - 1]), lower[..., n - 1 :]), -1)
