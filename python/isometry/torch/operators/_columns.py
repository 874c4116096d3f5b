"""`Columns` on tensors: the first columns of an operator, by the operator's own kernels."""

from __future__ import annotations

from typing import Generic

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._rules import check_expression
from ..._rules.index import Key
from ._operator import Op, Operator


class Columns(Operator, Generic[Op]):
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
        An argument that is not an operator of this face, or a count that is no integer.
    ValueError
        A count outside 1..n_in.

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

    __slots__ = ("_operator",)

    _operator: Op

    def __init__(self, operator: Op, count: int) -> None:
        check_expression.operator("operator", Operator, operator)
        self._operator = operator
        self._shape = operator.shape[0], check_expression.some_columns(count, operator.shape[1])
        self._batch_shape = operator.batch_shape
        self._dtype = operator.dtype

    @property
    def operator(self) -> Op:
        """The operator whose columns these are."""
        return self._operator

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Tensor:
        del check_finite
        units = torch.eye(self._shape[1], self._operator.shape[1], dtype=self._dtype, device=self.device)
        return self._operator._act(units, False, backend, True).mT

    def _rows(self, x: Tensor, adjoint: bool, backend: str | None) -> Tensor:
        if adjoint:
            return self._operator._rows(x, True, backend)[..., : self._shape[1]]
        return self._operator._rows(F.pad(x, (0, self._operator.shape[1] - self._shape[1])), False, backend)

    # -------------------------------------------------------- expressions

    def _parts(self) -> list[str]:
        return [repr(self._operator), f"count={self._shape[1]}"]

    def _picked(self, key: Key) -> Columns:
        return Columns(self._operator[key.entries], self._shape[1])

    @property
    def device(self) -> torch.device:
        """Where the tensors of the operator are."""
        return self._operator.device

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are recorded for one of its tensors."""
        return self._operator.requires_grad

    def detach(self) -> Columns:
        return Columns(self._operator.detach(), self._shape[1])

    def _moved(self, dtype: torch.dtype | None, device: torch.device | None) -> Columns:
        operator = self._operator.to(dtype=dtype, device=device)
        return self if operator is self._operator else Columns(operator, self._shape[1])


Operator._part = Columns
