"""`Adjoint` on tensors: W^H of an operator W, by the operator's own kernels."""

from typing import Any, Self

from torch import Tensor

from ._of_one import OfOne
from ._operator import Op, Operator


class Adjoint(OfOne[Op]):
    """The conjugate transpose of an operator, ``op.H``: c = W^H x.

    Parameters
    ----------
    operator : Operator
        W, an operator or a stack.

    Raises
    ------
    TypeError
        An argument that is not an operator of the torch interface.

    See Also
    --------
    Composition : the product of operators.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    The adjoint of an adjoint, ``op.H.H``, is the original itself.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> op = it.Householder(torch.tensor([[1.0], [2.0], [2.0]]))
    >>> op.H
    Adjoint(Householder(n=3, m=1, dtype=torch.float32))
    >>> op.H(op(torch.tensor([1.0, 2.0, 3.0]))).round(decimals=4), op.H.H is op
    (tensor([1., 2., 3.]), True)
    """

    __slots__ = ()

    def __init__(self, operator: Op) -> None:
        self._take(operator)
        self._shape = operator.shape[1], operator.shape[0]

    def _like(self, operator: Any) -> Self:
        return type(self)(operator)

    @property
    def H(self) -> Op:  # type: ignore[override]
        """The original operator."""
        return self._operator

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Tensor:
        w = self._operator.matrix(backend=backend, check_finite=check_finite).mT
        return w.conj().resolve_conj() if w.is_complex() else w

    def _determinant(self, backend: str | None) -> Tensor:
        return self._operator._determinant(backend).conj()

    def _rows(self, x: Tensor, adjoint: bool, backend: str | None) -> Tensor:
        return self._operator._rows(x, not adjoint, backend)


Operator._transpose = Adjoint
