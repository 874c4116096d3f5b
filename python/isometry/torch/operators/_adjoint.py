"""`Adjoint` on tensors: W^H of an operator W, by the operator's own kernels."""

from __future__ import annotations

from typing import Generic

import torch
from torch import Tensor

from ..._rules import check_expression
from ..._rules.index import Key
from ._operator import Op, Operator


class Adjoint(Operator, Generic[Op]):
    """The conjugate transpose of an operator, ``op.H``: c = W^H x.

    Parameters
    ----------
    operator : Operator
        W, an operator or a stack.

    Raises
    ------
    TypeError
        An argument that is not an operator of this face.

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

    __slots__ = ("_operator",)

    _operator: Op

    def __init__(self, operator: Op) -> None:
        check_expression.operator("operator", Operator, operator)
        self._operator = operator
        self._shape = operator.shape[1], operator.shape[0]
        self._batch_shape = operator.batch_shape
        self._dtype = operator.dtype

    @property
    def operator(self) -> Op:
        """The original operator."""
        return self._operator

    @property
    def H(self) -> Op:  # type: ignore[override]
        """The original operator."""
        return self._operator

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Tensor:
        w = self._operator.matrix(backend=backend, check_finite=check_finite).mT
        return w.conj().resolve_conj() if w.is_complex() else w

    def _rows(self, x: Tensor, adjoint: bool, backend: str | None) -> Tensor:
        return self._operator._rows(x, not adjoint, backend)

    # -------------------------------------------------------- expressions

    @property
    def _is_unitary(self) -> bool:  # type: ignore[override]
        return self._operator._is_unitary

    def _parts(self) -> list[str]:
        return [repr(self._operator)]

    def _picked(self, key: Key) -> Adjoint:
        return Adjoint(self._operator[key.entries])

    @property
    def device(self) -> torch.device:
        """Where the tensors of the operator are."""
        return self._operator.device

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are recorded for one of its tensors."""
        return self._operator.requires_grad

    def detach(self) -> Adjoint:
        return Adjoint(self._operator.detach())

    def _moved(self, dtype: torch.dtype | None, device: torch.device | None) -> Adjoint:
        operator = self._operator.to(dtype=dtype, device=device)
        return self if operator is self._operator else Adjoint(operator)


Operator._transpose = Adjoint
