"""Shared by all operators: conversion between rows in any shape, dtype and layout and the canonical rows of a kernel.

apply(x):  c = W x,     apply_adjoint(x):  c = W^H x     for every vector in the last axis of x.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, overload

import torch
from torch import Tensor

from ..._rules import check, check_expression, stacks
from ..._rules.expression import Expression
from ..._rules.masks import unmasked
from .._dispatch.function import COMPLEX_OF, HALF, REAL_OF, dtype_name
from .._dispatch.mode import FORMULA, GRAPH, autocast, mode
from .._dispatch.results import computed
from ._expressions import Expressions
from ._plans import THROUGH_MATRIX

if TYPE_CHECKING:
    from ._adjoint import Adjoint
    from ._columns import Columns

Arguments = tuple[Tensor | None, ...]
#: An operator that another is made from.
Op = TypeVar("Op", bound="Operator", covariant=True)

_DENSE = (torch.strided, torch.jagged)


def dense(name: str, value: object, expected: str = "a torch.Tensor") -> Tensor:
    """The argument as a tensor, neither sparse nor of mkldnn."""
    if not isinstance(value, Tensor):
        check.kind(name, expected, value)
    if value.layout not in _DENSE:
        check.strided(name, value.layout)
    return value


def tensor(name: str, value: object) -> Tensor:
    """The argument as a floating or complex tensor; under autocast, half precision becomes float32."""
    value = dense(name, value)
    if value.dtype in REAL_OF:
        return value
    if value.dtype in HALF and autocast(value.device):
        return value.float()
    check.floating(name, dtype_name(value.dtype))
    raise AssertionError(name)


def real_tensor(
    name: str, value: object, beside: str, dtype: torch.dtype, device: torch.device | str = "cpu"
) -> Tensor:
    """A real argument of the precision of the given dtype; a Python number takes that precision."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # filled on the device: `torch.tensor` would copy the number from the host
        return torch.full((), check.number(name, value), dtype=REAL_OF[dtype], device=device)
    t = tensor(name, value)
    if t.dtype is not REAL_OF[dtype]:
        check.real(name, dtype_name(t.dtype))
        check.same_precision(name, dtype_name(t.dtype), beside, dtype_name(dtype))
    return t


def integers(name: str, value: object, device: torch.device | None = None) -> Tensor:
    """An argument of integers, as a tensor on the device, by default its own; the CPU for numbers. An empty list has no
    type of its own."""
    if isinstance(value, Tensor):
        dense(name, value)
    else:
        listed = isinstance(value, (list, tuple))
        unmasked(name, value)
        try:
            value = torch.as_tensor(value, device="cpu")
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            check.unreadable(name, error)
        value = value.to(torch.int64) if listed and not value.numel() else value
    check.integer(name, dtype_name(value.dtype))
    return value.to(device or value.device, torch.int64)


def beside(name: str, value: object, first: str, dtype: torch.dtype) -> Tensor:
    """A further argument of the matrix's type, real or complex, of the precision of the first."""
    t = tensor(name, value)
    if t.dtype is not dtype:
        check.same_precision(name, dtype_name(t.dtype), first, dtype_name(dtype))
    return t


def stacked(t: Tensor, batch: tuple[int, ...], tail: int) -> Tensor:
    """The argument with its batch axes broadcast to `batch` and flattened into one; its last `tail` axes stay."""
    own = t.shape[t.dim() - tail :]
    return t.expand(*batch, *own).reshape(math.prod(batch), *own)


class Operator(Expressions):
    """A linear map on the last axis, or a stack of them.

    See Also
    --------
    Composition, Adjoint, Columns, BlockDiagonal : operators made of operators.
    :doc:`choosing` : which operator.

    Notes
    -----
    A subclass of your own calls ``super().__init__(shape=, dtype=, batch_shape=())`` and defines
    ``matrix(self, *, backend=None, check_finite=True)``, in torch operations where it is to be differentiable.
    Everything else follows: it is applied through its matrix, composes, has an adjoint and works in `recurrence`.
    Conversions and members of a stack are a TypeError unless it defines ``to``, ``detach`` and ``__getitem__``.

    In expressions ``op(x)`` is ``op.apply(x)``, on vectors in the last axis; ``op @ x`` and ``x @ op`` are matmul of
    ``op.matrix()`` and x; ``op1 @ op2`` is a `Composition`, ``op.H`` an `Adjoint`, ``op.T`` the same for a real
    operator; ``len(op)``, ``op[i]`` and iteration run along the batch axes of a stack; ``np.asarray(op)`` is the matrix
    where no gradient is recorded. None of the products forms the matrix where the factors are cheaper.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> class Scaling(it.Operator):
    ...     def __init__(self, factor, n):
    ...         super().__init__(shape=(n, n), dtype=factor.dtype)
    ...         self.factor = factor
    ...     def matrix(self, *, backend=None, check_finite=True):
    ...         return self.factor * torch.eye(self.shape[0])
    >>> Scaling(torch.tensor(2.0), 3).apply(torch.ones(3))
    tensor([2., 2., 2.])
    """

    __slots__ = ("_batch_shape", "_dtype", "_shape")

    # The classes of `op1 @ op2` and `op.H`, which set them.
    _product: ClassVar[type[Any]]
    _transpose: ClassVar[type[Any]]

    #: Not indexed by a bool, which torch.compile of torch 2.11 refuses.
    _shape: tuple[int, int]
    _batch_shape: tuple[int, ...]
    _dtype: torch.dtype

    def __init__(self, *, shape: tuple[int, int], dtype: torch.dtype, batch_shape: tuple[int, ...] = ()) -> None:
        if not isinstance(dtype, torch.dtype):
            check.kind("dtype", "a torch.dtype", dtype)
        check.floating("dtype", dtype_name(dtype))
        self._shape, self._batch_shape = check_expression.sizes(shape, batch_shape)
        self._dtype = dtype

    @property
    def shape(self) -> tuple[int, int]:
        """(n_out, n_in) of one operator."""
        return self._shape

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the stack of operators, () for one."""
        return self._batch_shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of W."""
        return self._dtype

    # -------------------------------------------------------- expressions that make operators

    if TYPE_CHECKING:

        def columns(self, count: int) -> Columns[Self]: ...

    @overload
    def __matmul__(self, other: Expression) -> Operator: ...

    @overload
    def __matmul__(self, other: Tensor) -> Tensor: ...

    def __matmul__(self, other: Any) -> Any:
        """The product with another operator, or with columns by the rule of torch.matmul."""
        return self._product(self, other) if isinstance(other, Expression) else self._on_columns(other)

    @property
    def H(self) -> Adjoint[Self]:
        """The conjugate transpose W^H, an operator itself; ``op.H.H is op``.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Dense(torch.tensor([[1.0, 2.0j]])).H.matrix()
        tensor([[1.-0.j],
                [0.-2.j]])
        """
        return self._transpose(self)

    @property
    def T(self) -> Adjoint[Self]:
        """The transpose of a real operator, the same as `H`; AttributeError for a complex one."""
        if self._dtype.is_complex:
            check_expression.no_transpose(type(self).__name__, dtype_name(self._dtype))
        return self.H

    # -------------------------------------------------------- methods

    def apply(self, x: Tensor, *, backend: str | None = None) -> Tensor:
        """W x for every vector in the last axis of x.

        Parameters
        ----------
        x : Tensor, shape (..., n_in)
            Its leading axes broadcast against `batch_shape`.
        backend : {"cpu", "gpu"}, optional
            Where the kernels run; by default as `use_backend` says.

        Returns
        -------
        Tensor, shape (..., n_out)
        """
        return self._act(x, False, backend)

    def apply_adjoint(self, x: Tensor, *, backend: str | None = None) -> Tensor:
        """W^H x for every vector in the last axis of x.

        Parameters
        ----------
        x : Tensor, shape (..., n_out)
            Its leading axes broadcast against `batch_shape`.
        backend : {"cpu", "gpu"}, optional
            Where the kernels run; by default as `use_backend` says.

        Returns
        -------
        Tensor, shape (..., n_in)
        """
        return self._act(x, True, backend)

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Tensor:
        """W, shape (*batch_shape, n_out, n_in).

        Parameters
        ----------
        backend : {"cpu", "gpu"}, optional
            Where the kernels run; by default as `use_backend` says.
        check_finite : bool
            Has no effect: NaN and infinity are never refused here. It is there for programs that use both interfaces.
        """
        raise NotImplementedError(f"{type(self).__name__} must define matrix()")

    def _rows(self, x: Tensor, adjoint: bool, backend: str | None) -> Tensor:
        """W x or W^H x for x of the operator's dtype and of shape (..., n), or (nb, k, n) for a stack."""
        w = tensor("matrix()", self.matrix(backend=backend))
        check.exact("matrix()", tuple(w.shape), (*self._batch_shape, *self._shape))
        if self._batch_shape:
            w = w.reshape(-1, *self._shape)
        how = mode(w, x)
        if not x.numel() or how is GRAPH:
            how = FORMULA
        return computed(THROUGH_MATRIX.apply, how, backend, (adjoint, self._shape[1 if adjoint else 0]), (x, w))[0]

    def _factors(self, dtype: torch.dtype) -> tuple[str, Arguments] | None:
        """The object whose kernels step a recurrence by its factors or by W, and its arguments in this dtype; None
        where there is W alone.
        """
        del dtype
        return None

    def _act(self, x: Tensor, adjoint: bool, backend: str | None, columns: bool = False) -> Tensor:
        """W x or W^H x; with `columns` the last but one axis of x is not a batch axis."""
        if backend is not None:
            check.backend(backend)
        features = self._shape[0 if adjoint else 1]
        own = self._dtype
        plain = isinstance(x, Tensor) and x.dtype is own and x.layout is torch.strided
        # torch.compile cannot trace `not` of a tuple of symbolic sizes.
        if plain and self._batch_shape == () and x.dim() and x.shape[-1] == features:
            return self._rows(x, adjoint, backend)
        x = tensor("x", x)
        check.same_precision("x", dtype_name(x.dtype), "the operator", dtype_name(own))
        batch = (*self._batch_shape, 1) if columns and self._batch_shape else self._batch_shape
        plan = stacks.plan(batch, tuple(x.shape), features)
        if x.dtype is own:
            return self._fold(x, plan, adjoint, backend)
        if own is COMPLEX_OF[own]:
            return self._fold(x.to(own), plan, adjoint, backend)
        # A real W acts on real and imaginary parts separately: both are rows of one call.
        parts = torch.stack((x.real, x.imag)).reshape(2, *(1,) * (len(plan.full) + 1 - x.dim()), *x.shape)
        real, imaginary = self._act(parts, adjoint, backend, columns)
        return torch.complex(real, imaginary)

    def _each(self, x: Tensor, adjoint: bool, backend: str | None) -> Tensor:
        """W_k x_k or W_k^H x_k for the members W_k of a stack, x (..., h, n) of the operator's dtype."""
        return self._act(x, adjoint, backend)

    def _fold(self, x: Tensor, plan: stacks.Fold, adjoint: bool, backend: str | None) -> Tensor:
        if self._batch_shape == ():
            return self._rows(x, adjoint, backend)
        x = x.expand(*plan.full, x.shape[-1])
        if plan.perm is not None:
            x = x.permute(*plan.perm, -1)
        out = self._rows(x.reshape(plan.nb, plan.k, x.shape[-1]), adjoint, backend)
        out = out.reshape(*plan.permuted, out.shape[-1])
        return out if plan.inverse is None else out.permute(*plan.inverse, -1)
