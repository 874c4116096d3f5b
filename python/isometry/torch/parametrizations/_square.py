"""A square parametrised weight B exp(A) on a device without kernels, one operation of autograd.

There each call is a launch, and `torch.matrix_exp` is one call. With A = Y - Y^H of Y = tril(X) and C = B^H W_bar, the
gradient of A is the derivative L of exp at A^H along C. It begins at A^H / 2^s, of norm 4, where it is above the
diagonal in the exponential of [A^H / 2^s, C / |C|; 0, A^H / 2^s]: larger blocks would cost it accuracy. With
E = exp(A^H / 2^s), each of s steps is

    [E, L] <- [E E, E L + L E].

As many steps are launched as norms of 256 need; beyond that s is no larger. Each step doubles the distance of E from
unitary; steps of Newton and Schulz take it back, and that of W.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._dispatch.device import computed_there
from ..formulas._precision import full_precision


def weight(formula: Callable[..., tuple[Tensor, ...]], x: Tensor, base: Tensor | None) -> Tensor:
    """B exp(A) for a square X (..., n, n); the formula has the same tensors."""
    return computed_there(Written(formula, _forward, _backward), (x, base))[0]


class Written(NamedTuple):
    """A map whose forward and backward pass are written out; its tensors are X and the base."""

    formula: Callable[..., tuple[Tensor, ...]]
    forward: Callable[..., tuple[Tensor, tuple[Tensor, ...]]]  # from X and the base to W and what is saved
    backward: Callable[..., Tensor]  # from the cotangent, these and what was saved to the gradient of X

    def run(self, given: Sequence[Any], saving: bool) -> tuple[tuple[Tensor], tuple[Tensor, ...]]:
        """W, and what is saved."""
        del saving
        w, saved = self.forward(*given)
        return (w,), saved

    def pull(
        self, given: Sequence[Any], saved: Sequence[Any], wanted: Sequence[bool], cts: Sequence[Any]
    ) -> tuple[Tensor | None, ...]:
        """The gradient of X."""
        del wanted
        return self.backward(cts[0], given, saved), None


_NORM, _STEPS = 4, 6


@full_precision
def _forward(x: Tensor, base: Tensor | None) -> tuple[Tensor, tuple[Tensor, ...]]:
    w = unitary(torch.matrix_exp(_skew(matrices(x))))
    return (w if base is None else torch.bmm(matrices(base), w)).reshape(x.shape), ()


@full_precision
def _backward(ct: Tensor, given: Sequence[Any], _saved: Sequence[Any]) -> Tensor:
    x, base = given
    a, n, along = _skew(matrices(x)), x.shape[-1], matrices(ct)
    if base is not None:
        along = torch.bmm(matrices(base).mH, along)
    size = torch.linalg.matrix_norm(along, 1, keepdim=True).clamp_(min=torch.finfo(x.dtype).tiny)
    norm = torch.linalg.matrix_norm(a, 1, keepdim=True)
    halvings = norm.div_(_NORM).log2_().ceil_().clamp_(0, _STEPS)
    less = torch.exp2(-halvings)
    blocks = a.new_zeros(len(a), 2, n, 2, n)
    torch.mul(a.mH, less, out=blocks[:, 0, :, 0])
    blocks[:, 1, :, 1].copy_(blocks[:, 0, :, 0])
    torch.div(along, size, out=blocks[:, 0, :, 1])
    both = torch.matrix_exp(blocks.flatten(3).flatten(1, 2))[:, :n]
    active = (halvings > torch.arange(_STEPS, device=a.device)).unsqueeze(-1)
    for step in range(_STEPS):
        power, along = both.split(n, -1)
        power = power if step % 2 else unitary(power)
        next_ = torch.empty_like(both)
        torch.bmm(power, power, out=next_[:, :, :n])
        torch.bmm(along, power, out=next_[:, :, n:])
        next_[:, :, n:].baddbmm_(power, along)
        both = torch.where(active[:, :, step], next_, both)
    bar = both[:, :, n:]
    return (bar - bar.mH).mul_(size * less).tril_().reshape(x.shape)


def unitary(x: Tensor) -> Tensor:
    """Closer to unitary: X + X (I - X^H X) / 2."""
    return torch.baddbmm(x, x, torch.bmm(x.mH, x), beta=1.5, alpha=-0.5)


def matrices(t: Tensor) -> Tensor:
    """A stack of matrices with one axis."""
    return t.reshape(-1, *t.shape[-2:])


def _skew(x: Tensor) -> Tensor:
    lower = x.tril()
    return lower - lower.mH
