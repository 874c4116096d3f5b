"""Thin parametrised weights on a device without kernels: the maps of `_maps`, one operation of autograd per weight.

On such a device each call is a launch. The trained matrix and the base are factored together, matrices are filled in
place, and the gradient has a form of its own. With T^{-1} = striu(V^H V) + diag(1 / tau) the reflections of V are I -
V T V^H; 1 / tau is half of the diagonal of V^H V where they are real. P^{-1} = I + G/4 - A1/2 of the Cayley transform
has the gradient -P^H P_bar P^H, that of an exponential is a block of an exponential of twice the size.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._dispatch.device import computed_there
from ..formulas._precision import doubled, full_precision
from ..formulas._solve import solve, triangular
from ._signs import of_bits
from ._square import Written, matrices, unitary

Saved = tuple[Tensor, ...]


def weight(name: str, formula: Callable[..., tuple[Tensor, ...]], x: Tensor, base: Tensor | None) -> Tensor:
    """B M(X) for a thin X (..., n, k), by the map of this name; the formula has the same tensors."""
    return computed_there(Written(formula, partial(_forward, name), partial(_backward, name)), (x, base))[0]


def _diagonal(t: Tensor) -> Tensor:
    return t.diagonal(dim1=-2, dim2=-1)


@full_precision
def _forward(name: str, x: Tensor, base: Tensor | None) -> tuple[Tensor, Saved]:
    """W, and what the map and the packed base save."""
    turn: Reflections | None
    shape, x, base = x.shape, matrices(x), None if base is None else matrices(base)
    if name == "householder":
        every = _reflections(x if base is None else torch.cat((x, base)))
        parts = zip(*[t.tensor_split((len(x),)) for t in every], strict=True)
        own, turn = (Reflections(*part) for part in parts)
        w, saved = _product(own)
    else:
        w, saved = _SKEW[name][0](x)
        turn = None if base is None else _reflections(base)
    if base is not None and turn is not None:
        w, saved = turn.apply_(w), (*saved, *turn)
    return w.reshape(shape), saved


@full_precision
def _backward(name: str, ct: Tensor, given: Sequence[Any], saved: Sequence[Tensor]) -> Tensor:
    shape, ct = ct.shape, matrices(ct)
    if given[1] is not None:
        saved, turn = saved[:-_PARTS], Reflections(*saved[-_PARTS:])
        ct = turn.adjoint(ct)
    return (_product_gradient if name == "householder" else _SKEW[name][1])(ct, *saved).reshape(shape)


# ---------------------------------------------------------------- reflections


class Reflections(NamedTuple):
    """H_1 ... H_k D = (I - V T V^H) D for a stack, D = diag(signs, 1, ..., 1)."""

    vectors: Tensor
    inverse: Tensor  #: T^{-1}, or (I + diag(tau) striu(V^H V)) where there is a tau
    tau: Tensor  #: (*, 0) for real reflections
    signs: Tensor

    def solved(self, h: Tensor, adjoint: bool) -> Tensor:
        """T h, or T^H h."""
        m, tau = self.inverse, self.tau.unsqueeze(-1)
        if not tau.numel():
            return triangular(m.mH if adjoint else m, h, upper=not adjoint)
        if adjoint:
            return tau.conj() * triangular(m.mH, h, upper=False, unit=True)
        return triangular(m, tau * h, upper=True, unit=True)

    def apply_(self, w: Tensor) -> Tensor:
        """The product with W, written to W."""
        v = self.vectors
        w[:, : v.shape[-1]].mul_(self.signs.unsqueeze(-1))
        return w.baddbmm_(v, self.solved(torch.bmm(v.mH, w), False), alpha=-1)

    def adjoint(self, w: Tensor) -> Tensor:
        """The product of the conjugate transpose with W."""
        v = self.vectors
        out = torch.baddbmm(w, v, self.solved(torch.bmm(v.mH, w), True), alpha=-1)
        out[:, : v.shape[-1]].mul_(self.signs.unsqueeze(-1))
        return out


_PARTS = len(Reflections._fields)


def _reflections(a: Tensor) -> Reflections:
    """Those of packed matrices."""
    own = _diagonal(a)
    turns = own.is_complex()
    signed = own.real if turns else own
    signs = of_bits(signed)
    v = a.tril(-1)
    _diagonal(v).fill_(1)
    m = torch.bmm(v.mH, v)
    if not turns:
        m.triu_()
        _diagonal(m).mul_(0.5)
        return Reflections(v, m, m.new_empty(len(a), 0), signs)
    angle, size = own.imag, _diagonal(m).real
    tau = torch.complex((1 + angle.cos()) / size, angle.sin() / size)
    return Reflections(v, m.triu_(1).mul_(tau.unsqueeze(-1)), tau, signs)


def _product(own: Reflections) -> tuple[Tensor, Saved]:
    """W = (E - V Z) D, Z = T V1^T, of real reflections."""
    v, m, _, signs = own
    z = triangular(m, v[:, : v.shape[-1]].mT * signs.unsqueeze(-2), upper=True)  # times D
    w = torch.baddbmm(v, v, z, beta=0, alpha=-1)
    _diagonal(w).add_(signs)
    return w, (v, m, z, signs)


def _product_gradient(ct: Tensor, v: Tensor, m: Tensor, z: Tensor, signs: Tensor) -> Tensor:
    """X_bar, through the vectors and their Gram matrix."""
    k = v.shape[-1]
    z_bar = torch.baddbmm(z, v.mT, ct, beta=0, alpha=-1)
    r_bar = triangular(m.mT, z_bar, upper=False)
    v_bar = torch.baddbmm(v, ct, z.mT, beta=0, alpha=-1)
    v_bar[:, :k].addcmul_(r_bar.mT, signs.unsqueeze(-1))
    gram_bar = torch.baddbmm(z, r_bar, z.mT, beta=0, alpha=-1).triu_()
    _diagonal(gram_bar).mul_(0.5)
    return v_bar.baddbmm_(v, gram_bar + gram_bar.mT).tril_(-1)


# ---------------------------------------------------------------- functions of a skew matrix


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """The first rows, without what is above the diagonal, and the rows below, `doubled`."""
    x, k = doubled(x), x.shape[-1]
    return x[:, :k].tril(), x[:, k:]


def _cayley(x: Tensor) -> tuple[Tensor, Saved]:
    (first, below), k = _parts(x), x.shape[-1]
    a = first - first.mH
    gram = torch.baddbmm(a, below.mH, below, beta=0, alpha=0.25)
    _diagonal(gram).add_(1)
    lower = torch.linalg.cholesky_ex(gram)[0]
    skew = triangular(lower.mH, triangular(lower, a, upper=False), upper=True, left=False)
    inner = (skew.mH - skew).mul_(0.25)
    _diagonal(inner).add_(1)
    eye = torch.eye(k, dtype=a.dtype, device=a.device).expand_as(a)
    right = solve(inner, triangular(lower, eye, upper=False))
    p = triangular(lower.mH, right, upper=True)
    w = a.new_empty(x.shape)
    torch.mul(p, 2, out=w[:, :k])
    _diagonal(w).sub_(1)
    torch.bmm(below, p, out=w[:, k:])
    return (unitary(w) if w.dtype is x.dtype else w.to(x.dtype)), (below, p)


def _cayley_gradient(ct: Tensor, below: Tensor, p: Tensor) -> Tensor:
    f, k = ct.to(p.dtype), p.shape[-1]
    p_bar = torch.baddbmm(f[:, :k], below.mH, f[:, k:], beta=2)
    half = torch.baddbmm(p, torch.bmm(p.mH, p_bar), p.mH, beta=0, alpha=0.5)  # -1/2 of that of P^{-1}
    bar = f.new_empty(f.shape)
    torch.tril(half - half.mH, out=bar[:, :k])
    torch.bmm(f[:, k:], p.mH, out=bar[:, k:])
    bar[:, k:].baddbmm_(below, half + half.mH, alpha=-0.5)
    return bar.to(ct.dtype)


def _exponential(x: Tensor) -> tuple[Tensor, Saved]:
    (first, below), k = _parts(x), x.shape[-1]
    minus = torch.baddbmm(first, below.mH, below, beta=0, alpha=-1)  # -G
    size = minus.abs().sum(-2, keepdim=True).amax(-1, keepdim=True).sqrt().clamp_(min=1)
    blocks = first.new_zeros(len(x), 2 * k, 2 * k)
    torch.sub(first, first.mH, out=blocks[:, :k, :k])
    torch.div(minus, size, out=blocks[:, :k, k:])
    _diagonal(blocks[:, k:, :k]).copy_(size.squeeze(-1))
    columns = torch.matrix_exp(blocks)[..., :k]
    h = columns[:, k:] / size
    w = first.new_empty(x.shape)
    w[:, :k].copy_(columns[:, :k])
    torch.bmm(below, h, out=w[:, k:])
    return unitary(w).to(x.dtype), (below, h, blocks, size)


def _exponential_gradient(ct: Tensor, below: Tensor, h: Tensor, blocks: Tensor, size: Tensor) -> Tensor:
    """With M the matrix of blocks, the gradient of exp(M) along C is above the diagonal in exp([M^H, C; 0, M^H])."""
    f, k = ct.to(h.dtype), h.shape[-1]
    both = f.new_zeros(len(f), 2, 2 * k, 2, 2 * k)
    both.diagonal(dim1=1, dim2=3).copy_(blocks.mH.unsqueeze(-1))
    along = both[:, 0, :, 1]
    along[:, :k, :k].copy_(f[:, :k])
    torch.div(torch.bmm(below.mH, f[:, k:]), size, out=along[:, k:, :k])
    both = torch.matrix_exp(both.flatten(1, 2).flatten(2, 3)).unflatten(1, (2, -1)).unflatten(3, (2, -1))
    a_bar, minus_bar = both[:, 0, :k, 1].split(k, -1)
    bar = f.new_empty(f.shape)
    torch.tril(a_bar - a_bar.mH, out=bar[:, :k])
    torch.bmm(f[:, k:], h.mH, out=bar[:, k:])
    bar[:, k:].baddbmm_(below, (minus_bar + minus_bar.mH).div_(size), alpha=-1)
    return bar.to(ct.dtype)


_SKEW: dict[str, tuple[Callable[..., tuple[Tensor, Saved]], Callable[..., Tensor]]] = {
    "cayley": (_cayley, _cayley_gradient),
    "matrix_exp": (_exponential, _exponential_gradient),
}
