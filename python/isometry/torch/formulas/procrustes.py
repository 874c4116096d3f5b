"""The nearest matrix with orthonormal columns, W = U V^H of A = U S V^H.

W solves W^H A = A^H W, W^H W = I, A = W W^H A. The decomposition itself is kept constant, since its gradient divides
by s_i - s_j. Steps of Newton's method from W, with the constant inverse of the first derivative, have the value of W
and add one of its derivatives each:

W <- P(W + W Y + (A - W W^H A) V S^{-1} V^H),  Y = V [(V^H (W^H A - A^H W) V)_ij / (s_i + s_j)] V^H,
P(X) = X (3 I - X^H X) / 2.
"""

import torch
from torch import Tensor

from ._order import limited
from ._precision import full_precision
from ._scale import scale

# W and its first two derivatives.
ORDER = 2


@full_precision
def nearest(a: Tensor, special: bool) -> Tensor:
    """W (*, m, n); with `special` of determinant 1."""
    m, n = a.shape[-2:]
    if m < n:
        # .mH and its gradients would be conjugates that are not carried out, which .numpy() refuses
        return nearest(a.mT.conj_physical(), special).mT.conj_physical()
    if n == 0:
        return a.clone()
    fixed = a.detach()
    finite = torch.isfinite(fixed).all(-1, keepdim=True).all(-2, keepdim=True)
    fixed = torch.where(finite, fixed, 0)
    by, size = scale(fixed, (-2, -1))
    # a member that is not finite becomes NaN, and does not reach the decomposition, which refuses it for all
    a, fixed = a * by / torch.where(finite, size, torch.nan), fixed * by / size
    u, s, vh = torch.linalg.svd(fixed, full_matrices=False)
    v = vh.mH
    if special:
        signs = torch.ones_like(s)
        signs[..., -1] = torch.linalg.det(u @ vh).sign()
        u, s = u * signs.unsqueeze(-2), s * signs
    w = u @ vh
    least = m * torch.finfo(s.dtype).eps * s[..., :1].abs()
    pairs = _inverse(s.unsqueeze(-1) + s.unsqueeze(-2), least.unsqueeze(-1))
    inverse = v @ (_inverse(s, least).unsqueeze(-1) * vh)
    eye = torch.eye(n, dtype=a.dtype, device=a.device)
    for _ in range(ORDER):
        h = w.mH @ a
        k = vh @ h @ v
        # skew to the last bit: the diagonal of a real matrix divides by nothing
        moved = w + w @ (v @ ((k - k.mH) * pairs) @ vh)
        if m > n:
            moved = moved + (a - w @ h) @ inverse
        w = moved @ (1.5 * eye - 0.5 * moved.mH @ moved)
    return w + limited(a - a.detach(), ORDER)


def _inverse(s: Tensor, least: Tensor) -> Tensor:
    """1 / s, and 0 where s is 0 to rounding: there the derivative does not exist."""
    kept = s.abs() > least
    return torch.where(kept, 1 / torch.where(kept, s, 1), 0)
