"""Activations in place, and their derivatives from their values, for all steps at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu_

#: Of (t, g, out): writes the cotangents of the arguments of step t for the cotangents g of its values.
Derivative = Callable[[int | slice, Tensor, Tensor], None]
#: Those whose derivative follows from their value.
READABLE = ("identity", "relu", "leaky_relu", "tanh", "modrelu")


def readable(name: str, slope: float) -> bool:
    """Whether the derivative of this activation follows from its value."""
    return name in READABLE and (name != "leaky_relu" or slope > 0)


def _parts(z: Tensor) -> Tensor:
    """The real numbers of an array."""
    return torch.view_as_real(z) if z.is_complex() else z


class Phi(NamedTuple):
    """An activation."""

    name: str
    slope: float
    bias: Tensor | None

    def apply_(self, z: Tensor, modulus: Tensor | None = None) -> None:
        """phi(z), written to z; |z| of modReLU to `modulus` if that is given."""
        if self.name == "tanh":
            _parts(z).tanh_()
        elif self.name == "relu":
            _parts(z).relu_()
        elif self.name == "leaky_relu":
            leaky_relu_(_parts(z), self.slope)
        elif self.name == "modrelu":
            assert self.bias is not None
            length = (torch.abs(z, out=modulus) + self.bias).relu_()
            torch.mul(z.sgn(), length, out=z)  # sgn(0) = 0

    def derivative(self, y: Tensor, modulus: Tensor | None = None) -> Derivative | None:
        """From the values y of all steps, and |z| of complex modReLU, since |f| - b cancels. None for the identity."""
        if self.name == "identity":
            return None
        if modulus is not None:
            return self._turning(y, modulus)
        v = _parts(y)
        if self.name == "tanh":
            factor = 1 - v * v
        elif self.name == "leaky_relu":
            factor = torch.where(v > 0, torch.ones_like(v), torch.full_like(v, self.slope))
        else:
            factor = (v > 0 if self.name == "relu" else v != 0).to(v.dtype)
        factor.masked_fill_(v.isnan(), math.nan)

        def pull(t: int | slice, g: Tensor, out: Tensor) -> None:
            torch.mul(_parts(g), factor[t], out=_parts(out))

        return pull

    def _turning(self, y: Tensor, modulus: Tensor) -> Derivative:
        """Complex modReLU, f = z + b u with u = z / |z|: z_bar = f_bar + b / |z| (f_bar - u Re(conj(u) f_bar)), where f
        is not 0."""
        assert self.bias is not None
        u, live, half = y.sgn(), y != 0, self.bias / modulus / 2
        own = torch.where(live, 1 + half, 0)
        other = torch.where(live, -half, 0) * u * u

        def pull(t: int | slice, g: Tensor, out: Tensor) -> None:
            torch.mul(g, own[t], out=out)
            out.addcmul_(g.conj(), other[t])

        return pull

    def bias_gradient(self, y: Tensor, bar: Tensor) -> Tensor:
        """The gradient of modReLU's bias, Re(conj(u) f_bar), from the values and the cotangents of the arguments, whose
        part along u is the same."""
        along = y.sgn().conj() * bar
        return (along.real if along.is_complex() else along).flatten(0, -2).sum(0)


IDENTITY = Phi("identity", 0.0, None)
