"""W = D F_1 F_2 ... F_L: layers of 2 x 2 blocks on pairs of coordinates."""

import torch
from torch import Tensor

from ..._objects.mesh import layers
from ._precision import full_precision


@full_precision
def apply(
    frame: Tensor,
    theta: Tensor,
    phi: Tensor | None,
    phases: Tensor | None,
    signs: Tensor | None,
    x: Tensor,
    adjoint: bool = False,
) -> Tensor:
    """Rows W x, or W^H x, layer by layer."""
    n, depth, kind, _ = frame.shape[-4:]
    if frame.dim() > 4:  # a stack: add an axis for the rows of each operator
        theta = theta.unsqueeze(-2)
        phi, phases, signs = [None if t is None else t.unsqueeze(-2) for t in (phi, phases, signs)]
    last = signs if phases is None else torch.polar(torch.ones_like(phases), phases)
    plan, at = [], 0
    for start, pairs, p in layers(n, depth, kind) if theta.numel() and x.numel() else ():
        plan.append((start, pairs, p, slice(at, at + pairs)))
        at = at + pairs  # under torch.jit.trace a tensor, and += would change the slices too
    sin, cos = theta.sin(), theta.cos()
    turn = None if phi is None else torch.polar(torch.ones_like(phi), phi if adjoint else -phi)
    # Without pairs too: the sum of no terms is zero, and its graph leads back to the angles.
    y = x if at else x + theta.sum() + (0 if phi is None else phi.sum())
    if adjoint and last is not None:
        y = y * last.conj()
    for start, pairs, p, own in plan if adjoint else reversed(plan):
        if not pairs:
            continue
        shape = (*sin.shape[:-1], pairs // p, p)
        s, c = sin[..., own].reshape(shape), cos[..., own].reshape(shape)
        e = None if turn is None else turn[..., own].reshape(shape)
        blocks = y[..., start : start + 2 * pairs].reshape(*y.shape[:-1], pairs // p, 2, p)
        i, j = blocks.unbind(-2)
        if e is not None and not adjoint:
            i = e * i
        i, j = s * i + c * j, c * i - s * j
        if e is not None and adjoint:
            i = e * i
        turned = torch.stack((i, j), -2).reshape(*y.shape[:-1], 2 * pairs)
        y = torch.cat((y[..., :start], turned, y[..., start + 2 * pairs :]), -1)
    return y if adjoint or last is None else y * last


@full_precision
def matrix(frame: Tensor, theta: Tensor, phi: Tensor | None, phases: Tensor | None, signs: Tensor | None) -> Tensor:
    """W: its columns are W e_j."""
    *batch, n, _, _, _ = frame.shape
    eye = torch.eye(n, dtype=frame.dtype, device=frame.device).expand(*batch, n, n)
    return apply(frame, theta, phi, phases, signs, eye).mT.contiguous()
