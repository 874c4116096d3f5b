"""`Columns` on tensors: the first columns of an operator, by the operator's own kernels."""

from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._rules import check_expression
from ._of_one import OfOne
from ._operator import Op, Operator


class Columns(OfOne[Op]):
    """The first columns of an operator, ``op.columns(count)``: a matrix of n_out rows with orthonormal columns.

    Parameters
    ----------
    operator : Operator
        W, an operator or a stack.
    count : int
        How many of its columns, 1 <= count <= n_in.

    Raises
    ------
    TypeError
        An argument that is not an operator of the torch interface, or a count that is no integer.
    ValueError
        A count outside 1..n_in.

    See Also
    --------
    Householder : few reflections give few columns cheaply.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    The operator is applied to rows filled up with zeros, its matrix to the first unit vectors. So m reflections take of
    order n m count operations for their first columns, and no n x n matrix is formed.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> op = it.Householder.random(1000, 3)
    >>> thin = op.columns(2)
    >>> thin.shape, thin.H.shape
    ((1000, 2), (2, 1000))
    >>> torch.allclose(thin.matrix().T @ thin.matrix(), torch.eye(2), atol=1e-5)
    True
    """

    __slots__ = ()

    def __init__(self, operator: Op, count: int) -> None:
        self._take(operator)
        self._shape = operator.shape[0], check_expression.some_columns(count, operator.shape[1])

    def _like(self, operator: Any) -> Self:
        return type(self)(operator, self._shape[1])

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Tensor:
        del check_finite
        units = torch.eye(self._shape[1], self._operator.shape[1], dtype=self._dtype, device=self.device)
        return self._operator._act(units, False, backend, True).mT

    def _determinant(self, backend: str | None) -> Tensor:
        return self._operator._determinant(backend)

    def _rows(self, x: Tensor, adjoint: bool, backend: str | None) -> Tensor:
        if adjoint:
            return self._operator._rows(x, True, backend)[..., : self._shape[1]]
        return self._operator._rows(F.pad(x, (0, self._operator.shape[1] - self._shape[1])), False, backend)

    def _made_of(self) -> tuple[Op, ...]:
        return (self._operator,) if self._shape[0] == self._shape[1] else ()

    def _parts(self) -> list[str]:
        return [*super()._parts(), f"count={self._shape[1]}"]


Operator._part = Columns
