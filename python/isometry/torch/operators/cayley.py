"""`Cayley` on tensors; the definition is in `isometry._objects.cayley`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from ... import _core
from ..._inverse import cayley as inverse
from ..._objects._skew import half_turn, of_space, real_upper
from ..._objects._skew import rotvec as check_rotvec
from ..._objects.cayley import CAYLEY, FROM_MATRIX
from ..._objects.cayley import negative_ones as split
from .._dispatch.function import COMPLEX_OF, array, dtype_name
from .._dispatch.mode import visible
from ..formulas import cayley as formula
from ..formulas import dense
from . import _quat
from ._declared import Declared
from ._inverse import beside, projected
from ._operator import Arguments, real_tensor, tensor
from ._random import Draw, Drawing, stackable
from ._skew import packed


class Cayley(Declared, declaration=CAYLEY, matrix=formula.matrix):
    """The scaled Cayley transform of a skew-symmetric or skew-Hermitian matrix A: W = (I + A)^{-1} (I - A) D.

    W is orthogonal or unitary for all arguments.

    `*` is an optional batch shape; those of several arguments broadcast.

    Use it for small rotations, and where W, once formed, is applied often: 2 n^2 operations. Do not use it to fit a
    unitary matrix to data: for n = 16 L-BFGS needs 400 to 2,600 iterations, for `Exponential` and `Householder` 150 to
    300.

    Parameters
    ----------
    upper : Tensor, shape (*, n (n - 1) / 2)
        A[i, j] for i < j, row by row, real or complex; A[j, i] = -conj(A[i, j]). A tensor of shape (3, 3) is a stack of
        three rotations of R^3, not one A: see `from_skew`.
    diagonal : Tensor, shape (*, n), optional
        A[j, j] = i diagonal[j], real; only with a complex upper.
    signs : Tensor, shape (*, n), optional
        The diagonal of D, +1 or -1, fixed.
    phases : Tensor, shape (*, n), optional
        D = diag(exp(i phases)), real; they make W complex.

    Raises
    ------
    ValueError
        Shapes that do not fit, signs other than +1 and -1.
    TypeError
        Arguments, including signs, that are not tensors of the same floating-point precision.

    See Also
    --------
    Exponential : reaches every rotation, without signs.
    isometry.torch.nn.ScoRNN, isometry.torch.nn.ScuRNN : the layers with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.
    :doc:`rotations` : matrices fitted to data.

    Notes
    -----
    On the CPU, in every mode, for every finite value of the parameters W is orthogonal or unitary, with max|W^H W - I|
    below 20 n eps, or the call that forms it raises a ValueError that names `upper`. The error marks the limit of
    double precision: if A is singular, as every real A of odd n > 3 is, I + A is numerically singular for ||A|| around
    1/eps of float64, 4.5e15, and beyond. NaN arises from NaN and infinity only. In forward mode and where
    gradients are themselves differentiated, derivatives are exact up to order 7, and NaN above.

    On other devices values are not checked: W is the solution of a linear system with I + A in the precision of
    the arguments, orthogonal up to about ||A|| eps.

    References
    ----------
    Helfrich, Willmott, Ye: Orthogonal recurrent neural networks with scaled Cayley transform, ICML 2018.
    Maduranga, Helfrich, Ye: Complex unitary recurrent neural networks using scaled Cayley transform, AAAI 2019.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.Cayley(torch.tensor([1.0])).matrix()
    tensor([[ 0., -1.],
            [ 1.,  0.]])
    """

    __slots__ = ()

    upper: Tensor
    diagonal: Tensor | None
    signs: Tensor | None
    phases: Tensor | None

    def __init__(
        self,
        upper: Tensor,
        *,
        diagonal: Tensor | None = None,
        signs: Tensor | None = None,
        phases: Tensor | None = None,
    ) -> None:
        self._hold(upper, diagonal, signs, phases)
        if diagonal is not None and not upper.is_complex():
            real_upper()

    def _by_formula(self, arguments: Arguments) -> Tensor:
        upper, *rest = arguments
        assert upper is not None
        if upper.numel() and upper.is_cpu and visible(*arguments):
            return _matrix_seen(upper, rest)
        return formula.matrix(upper, *rest)

    def _rows_by_formula(self, arguments: Arguments, x: Tensor, adjoint: bool) -> Tensor:
        return dense.apply(self._by_formula(arguments), x, adjoint)

    @classmethod
    def from_skew(cls, a: Tensor) -> Cayley:
        """The operator of a full skew matrix; differentiable.

        Parameters
        ----------
        a : Tensor, shape (*, n, n)
            Skew-symmetric (real) or skew-Hermitian (complex), each matrix up to sqrt(eps) times its own largest
            entry. Its strict upper triangle and, if complex, the imaginary part of its diagonal are used.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Cayley.from_skew(torch.tensor([[0.0, 2.0], [-2.0, 0.0]])).upper
        tensor([2.])
        """
        upper, diagonal = packed(a)
        return cls(upper, diagonal=diagonal)

    @classmethod
    def from_rotvec(cls, rotvec: Tensor) -> Cayley:
        """The rotation of R^3 about the axis r by the angle |r|, right-handed; differentiable.

        Parameters
        ----------
        rotvec : Tensor, shape (*, 3), real
            r. A x = -tan(|r| / 2) / |r| r cross x, the Rodrigues parameters. An odd multiple of pi as |r| is a
            ValueError where values can be read.

        Examples
        --------
        >>> import math, torch, isometry.torch as it
        >>> it.Cayley.from_rotvec(torch.tensor([0.0, 0.0, math.pi / 2])).apply(torch.eye(3)[0]).round() + 0.0
        tensor([0., 1., 0.])
        """
        r = tensor("rotvec", rotvec)
        check_rotvec(tuple(r.shape), dtype_name(r.dtype))
        square = r.square().sum(-1, keepdim=True)
        small = square < torch.finfo(r.dtype).eps ** 0.5
        angle = torch.where(small, 1, square).sqrt()
        half = angle / 2
        if visible(r) and (half.cos().abs() <= torch.finfo(r.dtype).eps * angle).any():
            half_turn()
        # tan(t / 2) / t = 1/2 + t^2 / 24 + t^4 / 240 + ..., smooth at 0
        r = r * torch.where(small, 0.5 + square / 24 + square.square() / 240, half.tan() / angle)
        return cls(torch.stack((r[..., 2], -r[..., 1], r[..., 0]), -1))

    def rotvec(self) -> Tensor:
        """The rotation vector (*, 3), for n = 3: the axis times the angle, below pi; the inverse of `from_rotvec`.

        Differentiable. A ValueError for another n and for signs or phases, a TypeError for a complex operator.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Cayley.from_rotvec(torch.tensor([0.0, 0.5, 0.0])).rotvec() + 0.0
        tensor([0.0000, 0.5000, 0.0000])
        """
        of_space(tuple(self.shape), self.dtype.is_complex, self.signs is not None or self.phases is not None)
        u = self.upper
        g = torch.stack((u[..., 2], -u[..., 1], u[..., 0]), -1)  # tan(|r| / 2) / |r| r
        largest = g.detach().abs().amax(-1, keepdim=True).clamp(min=1)
        square = (g / largest).square().sum(-1, keepdim=True)
        small = (square < torch.finfo(g.dtype).eps ** 0.5) & (largest == 1)
        size = torch.where(small, 1, square).sqrt() * largest
        # 2 atan(s) / s = 2 - 2 s^2 / 3 + 2 s^4 / 5 - ..., smooth at 0
        series = 2 - square * (2 / 3) + square.square() * (2 / 5)
        return g * torch.where(small, series, 2 * size.atan() / size)

    @classmethod
    def from_quat(cls, quat: Tensor, *, scalar_first: bool = False) -> Cayley:
        """The rotation of R^3 of a quaternion (x, y, z, w), in SciPy's convention; differentiable.

        Parameters
        ----------
        quat : Tensor, shape (*, 4), real
            Of any length but zero; q and -q are one rotation. The length 0, and w = 0, half a turn, are a ValueError
            where values can be read.
        scalar_first : bool
            The order is (w, x, y, z).

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Cayley.from_quat(torch.tensor([0.0, 0.0, 1.0, 1.0])).apply(torch.eye(3)[0]).round() + 0.0
        tensor([0., 1., 0.])
        """
        g = _quat.rodrigues(*_quat.parts(quat, scalar_first))
        return cls(torch.stack((g[..., 2], -g[..., 1], g[..., 0]), -1))

    def quat(self, *, scalar_first: bool = False) -> Tensor:
        """The quaternion (*, 4) of length 1 with w >= 0, for n = 3: (x, y, z, w), or w first; the inverse of
        `from_quat`.

        Differentiable. A ValueError for another n and for signs or phases, a TypeError for a complex operator.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Cayley.from_quat(torch.tensor([0.0, 3.0, 0.0, -4.0])).quat() + 0.0
        tensor([ 0.0000, -0.6000,  0.0000,  0.8000])
        """
        last = self.signs is not None or self.phases is not None
        of_space(tuple(self.shape), self.dtype.is_complex, last, "quat")
        u = self.upper
        return _quat.of_rodrigues(torch.stack((u[..., 2], -u[..., 1], u[..., 0]), -1), scalar_first)

    @classmethod
    def from_matrix(
        cls,
        w: Tensor,
        signs: Tensor | None = None,
        phases: Tensor | None = None,
        *,
        nearest: bool = False,
        tol: float | None = None,
    ) -> Cayley:
        """The skew matrix, and the last factor if none is given, of an orthogonal or unitary matrix.

        A chosen last factor keeps every |A[i, j]| at most 1. Not differentiable.

        Parameters
        ----------
        w : Tensor, shape (*, n, n)
            Orthogonal (real) or unitary (complex).
        signs : Tensor, shape (*, n), optional
            The last factor; its batch shape broadcasts against that of w.
        phases : Tensor, shape (*, n), optional
            The same as phases, which make the transform complex; not together with signs.
        nearest : bool
            Project w first, by `linalg.procrustes`: any w will do, and `tol` refuses none.
        tol : float, optional
            The largest entry of |W^H W - I| accepted, by default n sqrt(eps).

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Cayley.from_matrix(-torch.eye(2)).signs
        tensor([-1., -1.])
        """
        w = tensor("w", w)
        if signs is not None:
            signs = real_tensor("signs", signs, "w", w.dtype, w.device).detach().clone()
        if phases is not None:
            phases = real_tensor("phases", phases, "w", w.dtype, w.device).detach().clone()
        _, batch = FROM_MATRIX.check(w.shape, *(None if t is None else t.shape for t in (signs, phases)))
        if signs is not None:
            _core.operator_check("cayley", (None, None, array(signs), None))
        w = projected(w, nearest)
        dtype = w.dtype if phases is None else COMPLEX_OF[w.dtype]
        signs_, phases_ = (None if t is None else t.numpy(force=True) for t in (signs, phases))
        kind = np.dtype(dtype_name(dtype))
        found = inverse.arguments(w.numpy(force=True), signs_, phases_, batch, kind, tol)
        given: dict[str, Any] = {"signs": signs, "phases": phases}
        return cls(**given | {name: beside(a, w) for name, a in found.items()})

    @classmethod
    @stackable
    def random(cls, n: int, *, negative_ones: int | None = None, **options: Unpack[Drawing]) -> Cayley:
        """A of 2 x 2 blocks with A[2j, 2j + 1] = tan(t_j / 2), t_j uniform on [0, pi / 2).

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n : int
            Size.
        negative_ones : int, optional
            Number of -1 at the end of a real D, by default n // 2. A complex D has phases uniform on [0, 2 pi).
        generator : torch.Generator, optional
            The random generator, by default torch's own.
        dtype : torch.dtype, optional
            By default `torch.get_default_dtype()`.
        device : torch.device, optional
            The device of the arrays.
        batch_shape : sequence of int, optional
            The shape of the stack, by default () for one operator; its members are drawn one after another.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Cayley.random(4, generator=torch.Generator().manual_seed(0)).signs
        tensor([ 1.,  1., -1., -1.])
        """
        n, count = split(negative_ones, n)
        draw = Draw(options)
        upper = draw.filled(0, n * (n - 1) // 2).to(draw.dtype)
        row = 2 * torch.arange(n // 2, device=draw.device)  # A[r, r + 1] is the first element of row r in the triangle
        t = draw.unit(n // 2) * (math.pi / 2)
        upper[row * n - row * (row + 1) // 2] = torch.tan(t / 2).to(draw.dtype)
        if draw.dtype.is_complex:
            return cls(upper, diagonal=draw.filled(0, n), phases=2 * math.pi * draw.unit(n))
        signs = draw.filled(1, n)
        signs[n - count :] = -1
        return cls(upper, signs=signs)


def _matrix_seen(upper: Tensor, rest: Sequence[Tensor | None]) -> Tensor:
    """The formula where values can be read (forward mode), in double precision, so that a tangent -2 S dA S is accurate
    where S is small."""
    wide = upper.to(torch.promote_types(upper.dtype, torch.float64))
    return formula.matrix(wide, *(None if t is None else t.double() for t in rest)).to(upper.dtype)
