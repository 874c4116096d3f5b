"""Products of reflections in LAPACK's storage, for any tau:

Q = I - V T V^H,  T = M^{-1} D = D M'^{-1},  M = I + D striu(V^H V),  M' = I + striu(V^H V) D,  D = diag(tau).

V is a below its diagonal, with ones on it. Nothing divides by tau or by 1 - tau ||v||^2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ._precision import full_precision


def _lower(a: Tensor) -> Tensor:
    """V, (*, m, k)."""
    return a.tril(-1) + torch.eye(a.shape[-2], a.shape[-1], dtype=a.dtype, device=a.device)


def _scaled(v: Tensor, tau: Tensor, h: Tensor, adjoint: bool) -> Tensor:
    """T h, or T^H h."""
    m = tau.unsqueeze(-1) * (v.mH @ v).triu(1)  # the unit diagonal is implied
    if adjoint:
        solved = torch.linalg.solve_triangular(m.mH, h, upper=False, unitriangular=True)
        return tau.conj().unsqueeze(-1) * solved
    return torch.linalg.solve_triangular(m, tau.unsqueeze(-1) * h, upper=True, unitriangular=True)


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
