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
#: Those whose derivative follows from which pairs were exchanged.
SORTING = ("oplu", "oplu_halves")


def served(cell: str, name: str, slope: float) -> bool:
    """Whether the derivative of this activation follows from its value, or from what a plain recurrence keeps."""
    return (name in READABLE and (name != "leaky_relu" or slope > 0)) or (cell == "recurrence" and name in SORTING)


def _parts(z: Tensor) -> Tensor:
    """The real numbers of an array."""
    return torch.view_as_real(z) if z.is_complex() else z


def _with_parts(z: Tensor) -> Tensor:
    """The same with a last axis of parts, the number itself where it is real."""
    return torch.view_as_real(z) if z.is_complex() else z.unsqueeze(-1)


class Phi(NamedTuple):
    """An activation."""

    name: str
    slope: float
    bias: Tensor | None

    def _pairs(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """The members of the pairs of OPLU in an array of parts."""
        half = v.shape[-2] // 2
        a, b = v.split(half, -2) if self.name == "oplu_halves" else v.unflatten(-2, (half, 2)).unbind(-2)
        return a, b

    def keeps(self, z: Tensor) -> tuple[tuple[int, ...], torch.dtype] | None:
        """Shape and type of what `apply_` keeps of a step: |z| of complex modReLU, since |f| - b cancels, or which
        pairs OPLU exchanges."""
        if self.name in SORTING:
            return tuple(self._pairs(_with_parts(z))[0].shape), torch.bool
        return (tuple(z.shape), z.real.dtype) if self.name == "modrelu" and z.is_complex() else None

    def apply_(self, z: Tensor, kept: Tensor | None = None) -> None:
        """phi(z), written to z; what the derivative needs besides to `kept` if that is given."""
        if self.name == "tanh":
            _parts(z).tanh_()
        elif self.name == "relu":
            _parts(z).relu_()
        elif self.name == "leaky_relu":
            leaky_relu_(_parts(z), self.slope)
        elif self.name in SORTING:
            a, b = self._pairs(_with_parts(z))
            if kept is not None:
                torch.gt(b, a, out=kept)
            high = torch.maximum(a, b)  # NaN if one is
            torch.minimum(a, b, out=b)
            a.copy_(high)
        elif self.name == "modrelu":
            assert self.bias is not None
            length = (torch.abs(z, out=kept) + self.bias).relu_()
            torch.mul(z.sgn(), length, out=z)  # sgn(0) = 0

    def derivative(self, y: Tensor, kept: Tensor | None = None) -> Derivative | None:
        """From the values y of all steps, and what was kept of them. None for the identity."""
        if self.name == "identity":
            return None
        if kept is not None:
            return self._exchanging(y, kept) if self.name in SORTING else self._turning(y, kept)
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

    def _exchanging(self, y: Tensor, exchanged: Tensor) -> Derivative:
        """OPLU: the cotangents of the pairs that were exchanged are exchanged."""
        v = _with_parts(y)
        source = torch.empty_like(v, dtype=torch.int64)  # where the cotangent of each argument is
        (a, b), half = self._pairs(source), y.shape[-1] // 2
        apart, first = (half, 1) if self.name == "oplu_halves" else (1, 2)
        own, step = first * torch.arange(half, device=y.device)[:, None], apart * exchanged
        torch.add(own, step, out=a)
        torch.sub(own + apart, step, out=b)
        factor = torch.ones_like(v).masked_fill_(v.isnan(), math.nan)

        def pull(t: int | slice, g: Tensor, out: Tensor) -> None:
            torch.gather(_with_parts(g), -2, source[t], out=_with_parts(out)).mul_(factor[t])

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
