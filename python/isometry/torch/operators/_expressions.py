"""Operators in expressions on tensors: calls, products with tensors, conversions."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from ... import _determinants
from ..._rules import check, check_expression
from ..._rules.expression import Expression, converted
from .._dispatch.function import dtype_name


class Expressions(Expression):
    """The expressions of `Operator`, each by way of its methods."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _act(self, x: Tensor, adjoint: bool, backend: str | None, columns: bool = False) -> Tensor: ...

        def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Tensor: ...

    def __call__(self, x: Tensor, *, backend: str | None = None) -> Tensor:
        """W x for every vector in the last axis of x: `apply`."""
        return self._act(x, False, backend)

    # -------------------------------------------------------- products

    def _on_columns(self, x: Tensor) -> Tensor:
        """W x for a vector or for columns; columns are returned as the transpose of the rows that the kernel wrote."""
        self._check_columns(x, self.shape[1], True)
        if x.dim() == 1:
            return self._act(x, False, None)
        return self._act(x.mT, False, None, True).mT

    def __rmatmul__(self, other: Tensor) -> Tensor:
        """The product of rows with W by the rule of torch.matmul."""
        return self._from_right(other, None)

    def _from_right(self, other: Tensor, backend: str | None) -> Tensor:
        """`other @ self` on a backend."""
        # x W = (W^H x^H)^H: rows through the adjoint, conjugated before and after where W is complex.
        self._check_columns(other, self.shape[0], False)
        if not self.dtype.is_complex:
            return self._act(other, True, backend, other.dim() > 1)
        return self._act(other.conj(), True, backend, other.dim() > 1).conj().resolve_conj()

    def _check_columns(self, x: Any, n: int, right: bool) -> None:
        if not isinstance(x, Tensor):
            check.kind("x", "a torch.Tensor", x)
        check_expression.columns(tuple(x.shape), n, self.batch_shape, right)

    # -------------------------------------------------------- the determinant

    def det(self, *, backend: str | None = None) -> Tensor:
        """The determinant of W, exact where the class fixes it: a sign, e^{i sum of angles}, a product of signs.

        Parameters
        ----------
        backend : {"cpu", "gpu"}, optional
            Where W is formed, if it is needed; by default as `use_backend` says.

        Returns
        -------
        Tensor, shape batch_shape

        Raises
        ------
        ValueError
            W is not square.

        Notes
        -----
        Of order n, or of the number of angles, for all but `Dense`, `BoundedSvd`, a `Cayley` of a complex triangle and
        subclasses of your own, whose matrix is eliminated in n^3 / 3 multiply-adds; `Kronecker` eliminates its factors.
        It is differentiable, with gradients of zero where it is constant.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Householder(torch.tensor([[1.0, 0.0], [1.0, 2.0]]), sign=torch.tensor(-1.0)).det()
        tensor(-1.)
        >>> (it.Dense(torch.eye(2)) @ it.Givens(torch.tensor([0.3]), [[0, 1]], n=2)).det()
        tensor(1.)
        """
        check_expression.square("det", type(self).__name__, self.shape)
        if backend is not None:
            check.backend(backend)
        found: Tensor = self._determinant(backend).to(self.dtype)
        return found.expand(self.batch_shape)

    def _determinant(self, backend: str | None) -> Tensor:
        """`det`, which may have fewer batch axes."""
        return _determinants.of_matrix(torch, self.matrix(backend=backend), self._unitary(False))

    # -------------------------------------------------------- tensors held

    @property
    def device(self) -> torch.device:
        """Where the tensors of the operator are."""
        return self.matrix().device

    @property
    def requires_grad(self) -> bool:
        """Whether gradients of its matrix are recorded for one of its arguments."""
        return self.matrix().requires_grad

    def detach(self) -> Self:
        """Return the same operator on detached tensors, which share memory and record no gradients.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> op = it.Cayley(torch.ones(3, requires_grad=True))
        >>> op.requires_grad, op.detach().requires_grad
        (True, False)
        """
        check_expression.undefined(type(self).__name__, "detach()")

    def to(
        self,
        *targets: torch.dtype | torch.device | str | int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | int | None = None,
    ) -> Self:
        """Convert to another precision, from real to complex, or to another device, differentiably.

        Parameters
        ----------
        *targets : torch.dtype or torch.device
            A dtype, a device (or its name), or both, as for `torch.Tensor.to`; each may be given by keyword instead.
        dtype : torch.dtype, optional
            float32, float64, complex64 or complex128.
        device : torch.device, optional
            Where the arguments go.

        Returns
        -------
        Operator
            Of the same class; the operator itself where nothing changes.

        Raises
        ------
        TypeError
            An unsupported dtype, or a real one for a complex operator; a subclass of your own that does not
            define this method.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Cayley(torch.ones(3)).to(torch.complex128)
        Cayley(n=3, dtype=torch.complex128)
        """
        for target in targets:
            if isinstance(target, torch.dtype):
                dtype = target
            else:
                device = target
        if dtype is not None and not isinstance(dtype, torch.dtype):
            check.kind("dtype", "a torch.dtype", dtype)
        if dtype is not None:
            check_expression.conversion(dtype_name(self.dtype), dtype_name(dtype))
        return self._moved(dtype, None if device is None else torch.device(device))

    def cpu(self) -> Self:
        """`to` the CPU."""
        return self.to(device="cpu")

    def cuda(self, device: torch.device | str | int | None = None) -> Self:
        """`to` a CUDA device, by default the current one."""
        return self.to(device="cuda" if device is None else device)

    def float(self) -> Self:
        """`to` float32, a TypeError for a complex operator."""
        return self.to(torch.float32)

    def double(self) -> Self:
        """`to` float64, a TypeError for a complex operator."""
        return self.to(torch.float64)

    def cfloat(self) -> Self:
        """`to` complex64."""
        return self.to(torch.complex64)

    def cdouble(self) -> Self:
        """`to` complex128."""
        return self.to(torch.complex128)

    def _moved(self, dtype: torch.dtype | None, device: torch.device | None) -> Self:
        """`to`, after its checks."""
        del dtype, device
        check_expression.undefined(type(self).__name__, "to()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The matrix, for `np.asarray(op)`."""
        if copy is False:
            check_expression.computed()
        if self.requires_grad:
            check_expression.recorded(type(self).__name__)
        w = self.matrix()
        if w.device.type != "cpu":
            check_expression.elsewhere(str(w.device))
        return np.array(w.resolve_conj().resolve_neg().numpy(), dtype)


def kind_of(
    operator: torch.dtype, own: torch.dtype, target: torch.dtype | None, real: bool = False
) -> torch.dtype | None:
    """The dtype of a part of an operator of dtype `operator` when that is converted to `target`."""
    if target is None:
        return None
    return getattr(torch, converted(dtype_name(operator), dtype_name(own), dtype_name(target), real))
