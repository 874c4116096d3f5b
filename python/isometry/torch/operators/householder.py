"""Products of Householder reflections, W = H(u_0) ... H(u_{m-1}) E with H(u) = I - 2 u u^H / ||u||^2."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ... import _check, _core, _tolerance
from .. import reference
from .._function import COMPLEX_OF, REAL_OF, array, dtype_name, formulas, room, visible
from ._base import Operator, StepKernel, drawn, real_tensor, stacked, tensor
from ._householder_function import HouseholderApply, HouseholderMatrix
from ._householder_recurrence import HouseholderRecurrence


class Householder(Operator):
    """W = H(u_0) ... H(u_{m-1}) E, the product of m reflections and a last factor.

    H(u) = I - 2 u u^H / ||u||^2. E is I, diag(1, ..., 1, sign) or diag(exp(i phases)). W is orthogonal (unitary) for
    all arguments, unless -1 < sign < 1. `*` is an optional batch shape; those of several arguments broadcast.

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

    __slots__ = ("_phases", "_sign", "_vectors")

    def __init__(self, vectors: Tensor, *, sign: Tensor | float | None = None, phases: Tensor | None = None) -> None:
        vectors = tensor("vectors", vectors)
        dtype = vectors.dtype
        last = None if sign is None else real_tensor("sign", sign, "vectors", dtype, vectors.device)
        if phases is not None:
            phases = real_tensor("phases", phases, "vectors", dtype, vectors.device)
            dtype = COMPLEX_OF[dtype]
        self._vectors = vectors
        self._sign = last
        self._phases = phases
        self._dtype = dtype
        self._batch_shape = _check.householder(
            tuple(vectors.shape),
            None if last is None else tuple(last.shape),
            None if phases is None else tuple(phases.shape),
        )
        n = vectors.shape[-2]
        self._shape = (n, n)
        # A number is checked before it is moved to the device of the vectors.
        _look(vectors, sign if isinstance(sign, (int, float)) else last)

    @property
    def vectors(self) -> Tensor:
        """The reflection vectors, shape (*, n, m)."""
        return self._vectors

    @property
    def sign(self) -> Tensor | None:
        """The last entry of E, shape (*)."""
        return self._sign

    @property
    def phases(self) -> Tensor | None:
        """The angles of E, shape (*, n)."""
        return self._phases

    def arguments(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """(vectors, sign, phases) with vectors of the given dtype and at most one batch axis."""
        vectors, sign, phases, batch = self._vectors, self._sign, self._phases, self._batch_shape
        if vectors.dtype is not dtype:
            vectors = vectors.to(dtype)
        if batch:
            vectors = stacked(vectors, batch, 2)
            sign = None if sign is None else stacked(sign, batch, 0)
            phases = None if phases is None else stacked(phases, batch, 1)
        return vectors, sign, phases

    def _matrix(self) -> Tensor:
        vectors, sign, phases = self.arguments(self._dtype)
        if not vectors.numel() or formulas(vectors, sign, phases):
            return reference.householder_matrix(vectors, sign, phases)
        return HouseholderMatrix.apply(vectors, sign, phases)

    def _rows(self, x: Tensor, adjoint: bool) -> Tensor:
        vectors, sign, phases = self.arguments(self._dtype)
        if not vectors.numel() or not x.numel() or formulas(vectors, sign, phases, x):
            return reference.householder_apply(vectors, sign, phases, x, adjoint)
        return HouseholderApply.apply(vectors, sign, phases, x, adjoint)

    def _step_kernel(self, dtype: torch.dtype, steps: int, batch: int) -> StepKernel | None:
        vectors, sign, phases = self.arguments(dtype)
        n, m = vectors.shape
        factored = vectors.numel() and _core.recurrence_plan(m, n, steps, batch) == "factored"
        if not factored or formulas(vectors, sign, phases):
            return None
        return StepKernel(HouseholderRecurrence, (vectors, sign, phases))

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
        _check.real("u", dtype_name(u.dtype))
        n, m = _check.trapezoid(tuple(u.shape), sign)
        lower = u.tril()
        if m < n:
            return cls(lower)
        s = u[..., -1, -1]
        if sign == "hard":
            # The value is exactly +-1; the added zero carries the derivative 1.
            s = torch.where(s > 0, 1.0, -1.0).to(u.dtype).detach() + (s - s.detach())
        return cls(lower[..., :-1], sign=s)

    @classmethod
    def from_matrix(cls, w: Tensor, *, tol: float | None = None) -> Householder:
        """The n - 1 reflections and the sign, or phases, of an orthogonal or unitary matrix; not differentiable.

        Parameters
        ----------
        w : Tensor, shape (*, n, n)
            Orthogonal (real) or unitary (complex).
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
        w = tensor("w", w)
        batch = _check.square("w", tuple(w.shape))
        n, nb = w.shape[-1], math.prod(batch)
        dtype, real = w.dtype, REAL_OF[w.dtype]
        bound = _tolerance.unitary(tol, n, dtype_name(dtype))
        vectors, u = room((*batch, n, n - 1), dtype, nb, n, n - 1)
        last, e = room((*batch, n), real, nb, n) if dtype.is_complex else room(batch, real, nb)
        if nb:
            _core.householder_from_matrix(array(w, nb, n, n), u, e, bound)
        vectors, last = vectors.to(w.device), last.to(w.device)
        return cls(vectors, phases=last) if dtype.is_complex else cls(vectors, sign=last)

    @classmethod
    def random(
        cls,
        n: int,
        m: int | None = None,
        *,
        rng: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> Householder:
        """Unit reflection vectors from uniform entries in [-1, 1), lower-trapezoidal.

        Parameters
        ----------
        n : int
            Size.
        m : int, optional
            Number of reflections, without a last factor. By default n - 1 reflections and a last factor: sign +1, or
            phases uniform on [-pi, pi) for a complex dtype.
        rng : torch.Generator, optional
            The random generator, by default torch's own.
        dtype : torch.dtype, optional
            By default `torch.get_default_dtype()`.
        device : torch.device, optional
            The device of the arrays.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Householder.random(4, rng=torch.Generator().manual_seed(0))
        Householder(shape=(4, 4), dtype=torch.float32)
        """
        n, count = _check.reflections(m, n)
        dtype = drawn(rng, dtype)
        real = REAL_OF[dtype]

        def uniform(*shape: int) -> Tensor:
            return 2 * torch.rand(shape, generator=rng, dtype=real, device=device) - 1

        u = torch.complex(uniform(n, count), uniform(n, count)) if dtype.is_complex else uniform(n, count)
        u = u.tril()
        u = u / torch.linalg.vector_norm(u, dim=-2, keepdim=True)
        if m is not None:
            return cls(u)
        if dtype.is_complex:
            return cls(u, phases=math.pi * uniform(n))
        return cls(u, sign=torch.ones((), dtype=real, device=device))


def _look(vectors: Tensor, sign: Tensor | float | None) -> None:
    """Reject values that a product of reflections cannot have, if they can be read; NaN and infinity pass."""
    if isinstance(sign, Tensor):
        if visible(sign) and (np.abs(sign.numpy(force=True)) > 1).any():
            _check.sign_range()
    elif sign is not None and abs(sign) > 1:
        _check.sign_range()
    if vectors.numel() and visible(vectors):
        n, m = vectors.shape[-2:]
        found = _core.householder_check(array(vectors, -1, n, m))
        if found is not None:
            _check.zero_reflection(*found)
