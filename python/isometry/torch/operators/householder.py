"""`Householder` on tensors; the definition is in `isometry._objects.householder`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor

from ..._inverse import householder as inverse
from ..._objects.householder import HOUSEHOLDER, reflections, trapezoid
from ..._rules import check, check_expression
from .._dispatch.function import dtype_name
from ..formulas import householder as formula
from ._declared import Declared
from ._inverse import keywords, matrices, stack
from ._operator import tensor
from ._random import Draw, Drawing, stackable


class Householder(Declared, declaration=HOUSEHOLDER, matrix=formula.matrix, apply=formula.apply):
    """A product of Householder reflections with an optional last factor.

    W = H(u_0) ... H(u_{m-1}) E with H(u) = I - 2 u u^H / ||u||^2. E is I, diag(1, ..., 1, sign) or diag(exp(i phases)).
    W is orthogonal (unitary) for all arguments, unless -1 < sign < 1. `*` is an optional batch shape; those of several
    arguments broadcast.

    Use it for any orthogonal or unitary matrix (m = n), to fit one to data, or with few reflections: W x costs 4 n m
    operations. Do not use it with m above n / 2 where W is applied often and costs count: a formed matrix takes 2 n^2.

    Parameters
    ----------
    vectors : Tensor, shape (*, n, m)
        The columns are the reflection vectors u_j; only their directions matter, but none may be zero.
    sign : Tensor or float, shape (*), optional
        The last entry of E, real, in [-1, 1].
    phases : Tensor, shape (*, n), optional
        The angles of E, real; they make W complex.

    Raises
    ------
    ValueError
        Shapes that do not fit, a sign outside [-1, 1], a zero vector or one whose squared norm overflows or is
        denormal (a norm outside 1.1e-19..1.8e19 in float32, 1.5e-154..1.3e154 in float64); if values can be read.
    TypeError
        Arguments that are not tensors of the same floating-point precision.

    See Also
    --------
    Cayley, Exponential : a matrix that is formed once.
    isometry.torch.nn.ORNN, isometry.torch.nn.UnitaryORNN : the layers with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.
    :doc:`rotations` : matrices fitted to data.

    References
    ----------
    Mhammedi, Hellicar, Rahman, Bailey: Efficient orthogonal parametrisation of recurrent neural networks using
    Householder reflections, ICML 2017.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> u = torch.tensor([[1.0, 0.0], [1.0, 2.0]], requires_grad=True)
    >>> w = it.Householder(u)
    >>> w.matrix()
    tensor([[ 0.,  1.],
            [-1.,  0.]], grad_fn=<HouseholderMatrixBackward>)
    >>> w.apply(torch.tensor([3.0, 4.0]))
    tensor([ 4., -3.], grad_fn=<HouseholderApplyBackward>)
    """

    __slots__ = ()

    vectors: Tensor
    sign: Tensor | None
    phases: Tensor | None

    def __init__(self, vectors: Tensor, *, sign: Tensor | float | None = None, phases: Tensor | None = None) -> None:
        self._hold(vectors, sign, phases)

    @classmethod
    def from_trapezoid(cls, u: Tensor, *, sign: str = "hard") -> Householder:
        """The transition of the oRNN from its lower-trapezoidal array, 1 <= m <= n.

        For m < n the columns of u are the reflection vectors. For m = n the last column holds the single number u_1,
        which is not a reflection vector: W = H(u_0) ... H(u_{n-2}) diag(1, ..., 1, s).

        Parameters
        ----------
        u : Tensor, shape (*, n, m)
            Real. Entries above the diagonal are ignored and get the gradient 0.
        sign : {"hard", "soft"}
            "hard": s is -1 if u_1 <= 0, else +1, and u_1 gets the gradient of s (straight-through). "soft": s = u_1,
            which must lie in [-1, 1].

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Householder.from_trapezoid(torch.tensor([[1.0, 0.0], [2.0, 0.3]])).sign
        tensor(1.)
        """
        u = tensor("u", u)
        check.real("u", dtype_name(u.dtype))
        n, m = trapezoid(tuple(u.shape), sign)
        if m < n:
            return cls(u.tril())
        # Methods, not indices: those hold the interpreter's lock while they wait for the mutex of a parameter.
        s = u.select(-1, -1).select(-1, -1)
        if sign == "hard":
            # The value is exactly +-1; the added zero carries the derivative 1.
            s = torch.where(s > 0, 1.0, -1.0).to(u.dtype).detach() + (s - s.detach())
        return cls(u.narrow(-1, 0, m - 1).tril(), sign=s)  # cut before the copy, so that the copy is the only one

    @classmethod
    def from_matrix(cls, w: Tensor, *, nearest: bool = False, tol: float | None = None) -> Householder:
        """The n - 1 reflections and the sign, or phases, of an orthogonal or unitary matrix; not differentiable.

        Parameters
        ----------
        w : Tensor, shape (*, n, n)
            Orthogonal (real) or unitary (complex).
        nearest : bool
            Project w first, by `linalg.procrustes`: any w will do, and `tol` refuses none.
        tol : float, optional
            The largest entry of |W^H W - I| accepted, by default n sqrt(eps).

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> w = it.Householder.from_matrix(torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))
        >>> w.matrix().round().abs()
        tensor([[0., 1.],
                [1., 0.]])
        """
        w, bound = matrices(w, nearest, tol)
        return cls(**keywords(inverse.arguments(stack(w), bound), w))

    @classmethod
    def haar(
        cls,
        n: int,
        *,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        batch_shape: Sequence[int] = (),
        special: bool = False,
    ) -> Householder:
        """A matrix from the Haar measure on the orthogonal or, for a complex dtype, the unitary group.

        Every matrix is as likely as any other. `random` is another distribution. The Q of a Gaussian matrix, with a
        positive diagonal of R.

        Parameters
        ----------
        n : int
            Size.
        generator : torch.Generator, optional
            The random generator, by default torch's own.
        dtype : torch.dtype, optional
            By default `torch.get_default_dtype()`.
        device : torch.device, optional
            The device of the arrays.
        batch_shape : sequence of int, optional
            The shape of the stack, by default () for one operator.
        special : bool
            Only matrices of determinant 1: the groups SO(n) and SU(n).

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Householder.haar(5)
        Householder(n=5, m=4, last='sign', dtype=torch.float32)
        """
        draw = Draw({"generator": generator, "dtype": dtype, "device": device})
        n, batch, special = check.count("n", n, 1), check_expression.batch(batch_shape), check.flag("special", special)
        return cls.from_matrix(draw.haar(n, batch, special))

    @classmethod
    @stackable
    def random(cls, n: int, m: int | None = None, **options: Unpack[Drawing]) -> Householder:
        """Unit reflection vectors from uniform entries in [-1, 1), lower-trapezoidal.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n : int
            Size.
        m : int, optional
            Number of reflections, without a last factor. By default n - 1 reflections and a last factor: sign +1, or
            phases uniform on [-pi, pi) for a complex dtype.
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
        >>> it.Householder.random(4, generator=torch.Generator().manual_seed(0))
        Householder(n=4, m=3, last='sign', dtype=torch.float32)
        """
        (n, count), draw = reflections(m, n), Draw(options)
        u = draw.uniform(n, count)
        u = (torch.complex(u, draw.uniform(n, count)) if draw.dtype.is_complex else u).tril()
        u = u / torch.linalg.vector_norm(u, dim=-2, keepdim=True)
        if m is not None:
            return cls(u)
        if draw.dtype.is_complex:
            return cls(u, phases=draw.angles(n))
        return cls(u, sign=draw.filled(1))
