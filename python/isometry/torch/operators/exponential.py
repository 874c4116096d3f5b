"""`Exponential` on tensors; the definition is in `isometry._objects.exponential`."""

from __future__ import annotations

import math
from typing import Unpack

import torch
from torch import Tensor

from ..._inverse import exponential as inverse
from ..._objects._skew import of_space, real_upper
from ..._objects._skew import rotvec as check_rotvec
from ..._objects.exponential import EXPONENTIAL
from ..._rules import check
from .._dispatch.function import dtype_name
from ..formulas import exponential as formula
from . import _quat
from ._declared import Declared
from ._inverse import keywords, matrices, stack
from ._operator import tensor
from ._random import Draw, Drawing, stackable
from ._skew import packed


class Exponential(Declared, declaration=EXPONENTIAL, matrix=formula.matrix):
    """The exponential of a skew-symmetric or skew-Hermitian matrix A: W = exp(A).

    W is orthogonal or unitary for all arguments.

    `*` is an optional batch shape; those of both arguments broadcast.

    Use it to fit a rotation or a unitary matrix to data: it reaches all of them. Do not use it for a real matrix of
    determinant -1, which it does not reach, or where W is formed often: `Cayley` takes (8/3) n^3 operations, this at
    least two products of matrices.

    Parameters
    ----------
    upper : Tensor, shape (*, n (n - 1) / 2)
        A[i, j] for i < j, row by row, real or complex; A[j, i] = -conj(A[i, j]). A tensor of shape (3, 3) is a stack of
        three rotations of R^3, not one A: see `from_skew`.
    diagonal : Tensor, shape (*, n), optional
        A[j, j] = i diagonal[j], real; only with a complex upper.

    Raises
    ------
    ValueError
        Shapes that do not fit, a diagonal given with a real upper.
    TypeError
        Arguments that are not tensors of the same floating-point precision.

    See Also
    --------
    Cayley : cheaper, and unbounded near the eigenvalue -1.
    isometry.torch.nn.ExpRNN : the layer with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.
    :doc:`rotations` : matrices fitted to data.

    Notes
    -----
    max|W^H W - I| stays below 20 n eps for all finite values, in every mode and on every device; angles, and gradients
    relative to the cotangent, are accurate to about ||A|| eps. Costs are as in the NumPy interface. In second
    derivatives, forward mode and on other devices the number of squarings cannot depend on ||A||: W then costs
    36 products in single precision, 73 in double precision, and its gradient twice as many.

    References
    ----------
    Lezcano-Casado, Martínez-Rubio: Cheap orthogonal constraints in neural networks, ICML 2019.

    Examples
    --------
    >>> import math, torch, isometry.torch as it
    >>> it.Exponential(torch.tensor([math.pi])).matrix().round() + 0.0
    tensor([[-1.,  0.],
            [ 0., -1.]])
    """

    __slots__ = ()

    upper: Tensor
    diagonal: Tensor | None

    def __init__(self, upper: Tensor, *, diagonal: Tensor | None = None) -> None:
        self._hold(upper, diagonal)
        if diagonal is not None and not upper.is_complex():
            real_upper()

    @classmethod
    def from_matrix(cls, w: Tensor, *, nearest: bool = False, tol: float | None = None) -> Exponential:
        """The principal logarithm of an orthogonal matrix of determinant 1, or of a unitary one; not differentiable.

        Parameters
        ----------
        w : Tensor, shape (*, n, n)
            Orthogonal (real) or unitary (complex). A real matrix of determinant -1 is a ValueError.
        nearest : bool
            Project w first, a real one to the nearest rotation, by `linalg.procrustes`: any w will do, and `tol`
            refuses none.
        tol : float, optional
            The largest entry of |W^H W - I| accepted, by default n sqrt(eps).

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Exponential.from_matrix(torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).upper
        tensor([1.5708])
        """
        w, bound = matrices(w, nearest, tol, special=True)
        return cls(**keywords(inverse.arguments(stack(w), bound), w))

    @classmethod
    def from_skew(cls, a: Tensor) -> Exponential:
        """The exponential of a full skew matrix; differentiable.

        Parameters
        ----------
        a : Tensor, shape (*, n, n)
            Skew-symmetric (real) or skew-Hermitian (complex), each matrix up to sqrt(eps) times its own largest
            entry. Its strict upper triangle and, if complex, the imaginary part of its diagonal are used.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Exponential.from_skew(torch.tensor([[0.0, 2.0], [-2.0, 0.0]])).upper
        tensor([2.])
        """
        upper, diagonal = packed(a)
        return cls(upper, diagonal=diagonal)

    @classmethod
    def from_rotvec(cls, rotvec: Tensor) -> Exponential:
        """The rotation of R^3 about the axis r by the angle |r|, right-handed; differentiable.

        Parameters
        ----------
        rotvec : Tensor, shape (*, 3), real
            r. A x = r cross x: upper = (-r_3, r_2, -r_1).

        Examples
        --------
        >>> import math, torch, isometry.torch as it
        >>> it.Exponential.from_rotvec(torch.tensor([0.0, 0.0, math.pi / 2])).apply(torch.eye(3)[0]).round() + 0.0
        tensor([0., 1., 0.])
        """
        r = tensor("rotvec", rotvec)
        check_rotvec(tuple(r.shape), dtype_name(r.dtype))
        return cls(torch.stack((-r[..., 2], r[..., 1], -r[..., 0]), -1))

    def rotvec(self) -> Tensor:
        """The rotation vector (*, 3), for n = 3: the axis times the angle, at most pi; the inverse of `from_rotvec`.

        Differentiable. A ValueError for another n, a TypeError for a complex operator.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Exponential.from_rotvec(torch.tensor([0.0, 0.5, 0.0])).rotvec() + 0.0
        tensor([0.0000, 0.5000, 0.0000])
        """
        of_space(tuple(self.shape), self.dtype.is_complex, False)
        u = self.upper
        r = torch.stack((-u[..., 2], u[..., 1], -u[..., 0]), -1)
        square = r.square().sum(-1, keepdim=True)
        far = square > math.pi**2
        angle = torch.where(far, square, 1).sqrt()
        turns = (angle / (2 * math.pi)).detach().round()
        return r * torch.where(far, (angle - 2 * math.pi * turns) / angle, 1)

    @classmethod
    def from_quat(cls, quat: Tensor, *, scalar_first: bool = False) -> Exponential:
        """The rotation of R^3 of a quaternion (x, y, z, w), in SciPy's convention; differentiable.

        Near the identity derivatives are right up to order 5.

        Parameters
        ----------
        quat : Tensor, shape (*, 4), real
            Of any length but zero, a ValueError where values can be read; q and -q are one rotation.
        scalar_first : bool
            The order is (w, x, y, z).

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Exponential.from_quat(torch.tensor([0.0, 0.0, 1.0, 1.0])).apply(torch.eye(3)[0]).round() + 0.0
        tensor([0., 1., 0.])
        """
        return cls.from_rotvec(_quat.rotvec(*_quat.parts(quat, scalar_first)))

    def quat(self, *, scalar_first: bool = False) -> Tensor:
        """The quaternion (*, 4) of length 1 with w >= 0, for n = 3: (x, y, z, w), or w first; the inverse of
        `from_quat`.

        Differentiable; near the identity derivatives are right up to order 5. A ValueError for another n, a TypeError
        for a complex operator. At half a turn either sign.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Exponential.from_quat(torch.tensor([0.0, 3.0, 0.0, -4.0])).quat() + 0.0
        tensor([ 0.0000, -0.6000,  0.0000,  0.8000])
        """
        of_space(tuple(self.shape), self.dtype.is_complex, False, "quat")
        u = self.upper
        return _quat.of_rotvec(torch.stack((-u[..., 2], u[..., 1], -u[..., 0]), -1), scalar_first)

    @classmethod
    @stackable
    def random(cls, n: int, **options: Unpack[Drawing]) -> Exponential:
        """A of 2 x 2 blocks with A[2j, 2j + 1] = t_j uniform on [-pi, pi): W has the eigenvalues e^{+-i t_j}.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n : int
            Size.
        generator : torch.Generator, optional
            The random generator, by default torch's own.
        dtype : torch.dtype, optional
            By default `torch.get_default_dtype()`; a complex A has the same real entries and a zero diagonal.
        device : torch.device, optional
            The device of the arrays.
        batch_shape : sequence of int, optional
            The shape of the stack, by default () for one operator; its members are drawn one after another.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> (it.Exponential.random(4, generator=torch.Generator().manual_seed(0)).upper != 0).nonzero().ravel()
        tensor([0, 5])
        """
        n, draw = check.count("n", n, 1), Draw(options)
        upper = draw.filled(0, n * (n - 1) // 2).to(draw.dtype)
        row = 2 * torch.arange(n // 2, device=draw.device)  # A[r, r + 1] is the first element of row r in the triangle
        upper[row * n - row * (row + 1) // 2] = draw.angles(n // 2).to(draw.dtype)
        return cls(upper, diagonal=draw.filled(0, n) if draw.dtype.is_complex else None)
