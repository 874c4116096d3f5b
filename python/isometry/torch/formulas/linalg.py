"""Products of reflections in LAPACK's storage, for any tau:

Q = I - V T V^H,  T = M^{-1} D = D M'^{-1},  M = I + D striu(V^H V),  M' = I + striu(V^H V) D,  D = diag(tau).

V is a below its diagonal, with ones on it. Nothing divides by tau or by 1 - tau ||v||^2. The inverse direction,
`geqrf`, takes one column after another.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from ._precision import full_precision
from ._scale import scale
from ._solve import triangular


def _lower(a: Tensor) -> Tensor:
    """V, (*, m, k)."""
    return a.tril(-1) + torch.eye(a.shape[-2], a.shape[-1], dtype=a.dtype, device=a.device)


def _scaled(v: Tensor, tau: Tensor, h: Tensor, adjoint: bool) -> Tensor:
    """T h, or T^H h."""
    m = tau.unsqueeze(-1) * (v.mH @ v).triu(1)  # the unit diagonal is implied
    if adjoint:
        solved = triangular(m.mH, h, upper=False, unit=True)
        return tau.conj().unsqueeze(-1) * solved
    return triangular(m, tau.unsqueeze(-1) * h, upper=True, unit=True)


@full_precision
def product(a: Tensor, tau: Tensor) -> Tensor:
    """The first k columns of Q, (*, m, k)."""
    v = _lower(a)
    m, k = a.shape[-2:]
    eye = torch.eye(m, k, dtype=a.dtype, device=a.device)
    return eye - v @ _scaled(v, tau, v[..., :k, :].mH, False)


@full_precision
def apply(a: Tensor, tau: Tensor, x: Tensor, left: bool, adjoint: bool) -> Tensor:
    """Q X or X Q, with Q^H for `adjoint`."""
    if not left:
        return _from_left(a, tau, x.mH, not adjoint).mH
    return _from_left(a, tau, x, adjoint)


def _from_left(a: Tensor, tau: Tensor, x: Tensor, adjoint: bool) -> Tensor:
    v = _lower(a)
    return x - v @ _scaled(v, tau, v.mH @ x, adjoint)


@full_precision
def geqrf(x: Tensor) -> tuple[Tensor, Tensor]:
    """R on and above the diagonal and the vectors below it, (*, m, n), and tau (*, min(m, n))."""
    m, n = x.shape[-2:]
    if not x.numel():
        return x.clone(), x.diagonal(dim1=-2, dim2=-1) * 1.0
    lower, upper, taus = [], [], []
    for j in range(min(m, n)):
        beta, tau, v = _reflection(x[..., 0])
        rest = x[..., 1:]
        rest = rest - tau.conj()[..., None, None] * v.unsqueeze(-1) * (v.conj().unsqueeze(-2) @ rest)
        taus.append(tau)
        lower.append(pad(v[..., 1:], (j + 1, 0)))
        upper.append(pad(torch.cat((beta.unsqueeze(-1), rest[..., 0, :]), -1), (j, 0)))
        x = rest[..., 1:, :]
    r = pad(torch.stack(upper, -2), (0, 0, 0, max(m - n, 0)))
    return r + pad(torch.stack(lower, -1), (0, max(n - m, 0))), torch.stack(taus, -1)


def _reflection(column: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """beta, tau and v (the one included) of the reflection that makes a column beta e_1; tau = 0 for one that is so."""
    fixed = column.detach()
    own = (fixed[..., 1:] == 0).all(-1)
    if column.is_complex():
        own = own & (fixed[..., 0].imag == 0)
    # beside a scale that is constant for derivatives; columns that are their own factor take part as e_1
    by, size = (t.squeeze(-1) for t in scale(fixed, (-1,)))
    by, size = torch.where(own, 1, by), torch.where(own, 1, size)
    first = torch.eye(1, column.shape[-1], dtype=column.dtype, device=column.device)[0]
    scaled = torch.where(own.unsqueeze(-1), first, column * by.unsqueeze(-1) / size.unsqueeze(-1))
    alpha = scaled[..., 0]
    real = alpha.real if column.is_complex() else alpha
    norm = torch.linalg.vector_norm(scaled, dim=-1)
    beta = torch.where(real.detach().signbit(), norm, -norm)
    tau = torch.where(own, torch.zeros_like(alpha), (beta - alpha) / beta)
    v = scaled / (alpha - beta).unsqueeze(-1)
    v = torch.cat((torch.ones_like(v[..., :1]), torch.where(own.unsqueeze(-1), 0, v[..., 1:])), -1)
    return torch.where(own, column[..., 0], (beta * size / by).to(column.dtype)), tau, v
