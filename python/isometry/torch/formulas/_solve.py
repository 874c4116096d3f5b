"""Linear systems, by products on a device where solves are slow or wrong.

On "mps" a triangular solve takes many times as long as the products of the same size, `linalg.solve` takes no complex
matrices, and its gradient was wrong in some releases (pytorch 198304, 187107, 175192). There an inverse is formed: of
a triangle by blocks, from 1 x 1 to half of its size,

    [A, 0; C, B]^{-1} = [A^{-1}, 0; -B^{-1} C A^{-1}, B^{-1}],

of any other matrix by a real solve. A step of refinement with the inverse gives the accuracy of the solve.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.compiler import is_compiling
from torch.nn.functional import pad


def by_products(t: Tensor) -> bool:
    """Whether systems of this tensor's device are solved by products; not in a graph, which takes no rule for vmap."""
    return t.device.type == "mps" and not is_compiling()


def triangular(m: Tensor, b: Tensor, *, upper: bool, unit: bool = False, left: bool = True) -> Tensor:
    """M^{-1} B, or B M^{-1}, for a triangle M with zeros outside; a unit diagonal is not read."""
    if not b.numel():  # torch would go over all members of a stack
        return b.expand(*torch.broadcast_shapes(m.shape[:-2], b.shape[:-2]), *b.shape[-2:]) + m.sum()
    if not by_products(m):
        return torch.linalg.solve_triangular(m, b, upper=upper, left=left, unitriangular=unit)
    if unit:
        m = m + torch.eye(m.shape[-1], dtype=m.dtype, device=m.device)
    if not left:
        return _refined(m.mT, _inverse(m.mT, not upper), b.mT).mT
    return _refined(m, _inverse(m, upper), b)


def solve(m: Tensor, b: Tensor) -> Tensor:
    """M^{-1} B, without the check for a zero pivot, for which a device would have to be waited for."""
    if not by_products(m):
        return torch.linalg.solve_ex(m, b)[0]
    return _refined(m, _inverse(m, None), b)


def _refined(m: Tensor, inverse: Tensor, b: Tensor) -> Tensor:
    x = inverse @ b
    return x + inverse @ (b - m @ x)


def _inverse(m: Tensor, upper: bool | None) -> Tensor:
    """That of an upper or lower triangle, or of any matrix."""
    if upper:
        return _inverse(m.mT, False).mT
    return _Inverse.apply(m, upper is None)  # type: ignore[no-untyped-call]


class _Inverse(Function):
    """Y = M^{-1}, with derivatives by products of every order: dY = -Y dM Y."""

    @staticmethod
    def forward(m: Tensor, whole: bool) -> Tensor:
        return _general(m) if whole else _of_triangle(m)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.whole = inputs[1]
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, bar: Tensor) -> tuple[Tensor, None]:
        (y,) = ctx.saved_tensors
        m_bar = -(y.mH @ bar @ y.mH)
        return (m_bar if ctx.whole else m_bar.tril()), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        (y,) = ctx.saved_tensors
        return -(y @ tangent @ y)

    @staticmethod
    def vmap(_: Any, dims: tuple[int | None, ...], m: Tensor, whole: bool) -> tuple[Tensor, int]:
        assert dims[0] is not None
        return _Inverse.apply(m.movedim(dims[0], 0), whole), 0  # type: ignore[no-untyped-call]


def _general(m: Tensor) -> Tensor:
    """By a real solve, with a right side of the same batch shape (pytorch 189134)."""
    n = m.shape[-1]
    if m.is_complex():
        real = torch.cat((torch.cat((m.real, -m.imag), -1), torch.cat((m.imag, m.real), -1)), -2)
        return torch.complex(*_general(real)[..., :n].split(n, -2))
    eye = torch.eye(n, dtype=m.dtype, device=m.device).expand_as(m).contiguous()
    return torch.linalg.solve_ex(m, eye)[0]


def _of_triangle(m: Tensor) -> Tensor:
    """That of a lower triangle."""
    n = m.shape[-1]
    size = 1 << max(n - 1, 0).bit_length()
    m = pad(m, (0, size - n, 0, size - n))
    y = torch.zeros_like(m)
    y.diagonal(dim1=-2, dim2=-1)[..., n:].fill_(1)
    torch.reciprocal(m.diagonal(dim1=-2, dim2=-1)[..., :n], out=y.diagonal(dim1=-2, dim2=-1)[..., :n])
    half = 1
    while half < size:
        blocks = _pairs(y, half)
        below = blocks(1, 1) @ (_pairs(m, half)(1, 0) @ blocks(0, 0))
        torch.neg(below, out=blocks(1, 0))
        half *= 2
    return y if n == size else y[..., :n, :n].contiguous()  # no view, which forward mode refuses


def _pairs(t: Tensor, half: int) -> Any:
    """The four parts, (..., count, half, half), of the blocks of twice this size along the diagonal."""
    parts = t.unflatten(-2, (-1, 2, half)).unflatten(-1, (-1, 2, half))

    def part(row: int, column: int) -> Tensor:
        return parts.select(-5, row).select(-2, column).diagonal(dim1=-4, dim2=-2).movedim(-1, -3)

    return part
