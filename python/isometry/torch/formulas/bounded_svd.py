"""W = U diag(sigma) V^H,  sigma_i = 1 + margin tanh(logits_i / 2) = (1 - margin) + 2 margin sigmoid(logits_i)."""

from torch import Tensor

from ._precision import full_precision


def _sigma(logits: Tensor, margin: Tensor) -> Tensor:
    """(..., 1, r), beside rows."""
    margin = margin.unsqueeze(-1)
    return ((1 - margin) + 2 * margin * logits.sigmoid()).unsqueeze(-2)


@full_precision
def matrix(u: Tensor, logits: Tensor, v: Tensor, margin: Tensor) -> Tensor:
    """W."""
    return (u * _sigma(logits, margin)) @ v.mH


@full_precision
def apply(u: Tensor, logits: Tensor, v: Tensor, margin: Tensor, x: Tensor, adjoint: bool = False) -> Tensor:
    """Rows U diag(sigma) V^H x, or V diag(sigma) U^H x."""
    left, right = (v, u) if adjoint else (u, v)
    flat = x.reshape(-1, x.shape[-1]) if u.dim() == 2 else x
    y = ((flat @ right.conj()) * _sigma(logits, margin)) @ left.mT
    return y.reshape(*x.shape[:-1], y.shape[-1])
