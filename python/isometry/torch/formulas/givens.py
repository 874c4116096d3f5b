"""W = G_1 G_2 ... G_m: plane rotations at chosen pairs of coordinates."""

import torch
from torch import Tensor

from ._precision import full_precision


@full_precision
def apply(frame: Tensor, angles: Tensor, pairs: Tensor, x: Tensor, adjoint: bool = False) -> Tensor:
    """Rows W x, or W^T x, rotation by rotation."""
    if frame.dim() > 2:  # a stack: every angle serves all rows of its operator
        angles, pairs = angles.unsqueeze(-2), pairs.unsqueeze(-3)
    m = angles.shape[-1] if x.numel() else 0
    # Without rotations or numbers too: the sum of no terms is zero, and its graph leads back to the angles.
    y = x if m else x + angles.sum()
    cos, sin = angles.cos(), (-angles if adjoint else angles).sin()
    for k in range(m) if adjoint else reversed(range(m)):
        places = pairs[..., k, :].expand(*y.shape[:-1], 2)
        i, j = y.gather(-1, places).unbind(-1)
        c, s = cos[..., k], sin[..., k]
        y = y.scatter(-1, places, torch.stack((c * i - s * j, s * i + c * j), -1))
    return y


@full_precision
def matrix(frame: Tensor, angles: Tensor, pairs: Tensor) -> Tensor:
    """W: its columns are W e_j."""
    *batch, n, _ = frame.shape
    eye = torch.eye(n, dtype=frame.dtype, device=frame.device).expand(*batch, n, n)
    return apply(frame, angles, pairs, eye).mT.contiguous()
