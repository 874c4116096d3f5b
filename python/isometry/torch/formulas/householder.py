"""W = (I - U T^{-1} U^H) E,  T = striu(U^H U) + diag(U^H U) / 2: a product of Householder reflections."""

import torch
from torch import Tensor

from ._precision import full_precision
from ._solve import triangular


def _last_factor(vectors: Tensor, sign: Tensor | None, phases: Tensor | None) -> Tensor | None:
    """The diagonal of E, shape (n,) or (nb, n); None for E = I."""
    if phases is not None:
        return torch.polar(torch.ones_like(phases), phases)
    if sign is None:
        return None
    ones = torch.ones((*vectors.shape[:-2], vectors.shape[-2] - 1), dtype=sign.dtype, device=sign.device)
    return torch.cat((ones, sign.unsqueeze(-1)), -1)


def _triangle(vectors: Tensor) -> Tensor:
    """T of the compact WY form, (..., m, m)."""
    gram = vectors.mH @ vectors
    return gram.triu(1) + torch.diag_embed(0.5 * gram.diagonal(dim1=-2, dim2=-1))


def _reflect(vectors: Tensor, y: Tensor, adjoint: bool) -> Tensor:
    """(I - U T^{-1} U^H) y for rows y of shape (..., k, n), with T^{-H} instead of T^{-1} for the adjoint."""
    t = _triangle(vectors)
    coefficients = (y @ vectors.conj()).mT
    solved = triangular(t.mH if adjoint else t, coefficients, upper=not adjoint)
    return y - (vectors @ solved).mT


@full_precision
def apply(vectors: Tensor, sign: Tensor | None, phases: Tensor | None, x: Tensor, adjoint: bool = False) -> Tensor:
    """Rows W x, or W^H x, of W = H(u_0) ... H(u_{m-1}) E."""
    last = _last_factor(vectors, sign, phases)
    if last is not None and vectors.dim() == 3:
        last = last.unsqueeze(-2)
    y = x if last is None or adjoint else x * last
    # Without reflections too: the sum of no terms is zero, and its graph leads back to the vectors.
    flat = y if vectors.dim() == 3 else y.reshape(-1, y.shape[-1])
    y = _reflect(vectors, flat, adjoint).reshape(y.shape)
    return y * last.conj() if adjoint and last is not None else y


@full_precision
def matrix(vectors: Tensor, sign: Tensor | None, phases: Tensor | None) -> Tensor:
    """W = (I - U T^{-1} U^H) E, shape (..., n, n)."""
    eye = torch.eye(vectors.shape[-2], dtype=vectors.dtype, device=vectors.device)
    w = eye - vectors @ triangular(_triangle(vectors), vectors.mH, upper=True)
    last = _last_factor(vectors, sign, phases)
    return w if last is None else w * last.unsqueeze(-2)
