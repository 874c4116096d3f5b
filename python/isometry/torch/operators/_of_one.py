"""Shared by the operators that are made from another one."""

from typing import Any, Generic, Self

import torch

from ..._rules import check_expression
from ..._rules.index import Key
from ._operator import Op, Operator


class OfOne(Operator, Generic[Op]):
    """An operator made from another one; a subclass takes it by `_take`, and says how another is made by `_like`."""

    __slots__ = ("_operator",)

    _operator: Op

    def _take(self, operator: Any) -> None:
        check_expression.operator("operator", Operator, operator)
        self._operator, self._batch_shape, self._dtype = operator, operator.batch_shape, operator.dtype

    def _like(self, operator: Any) -> Self:
        """The same of another operator."""
        raise NotImplementedError(f"{type(self).__name__} must define _like()")

    @property
    def operator(self) -> Op:
        """The original operator."""
        return self._operator

    def _made_of(self) -> tuple[Op, ...]:
        return (self._operator,)

    def _parts(self) -> list[str]:
        return [repr(self._operator)]

    def _picked(self, key: Key) -> Self:
        return self._like(self._operator[key.entries])

    @property
    def device(self) -> torch.device:
        """Where the tensors of the operator are."""
        return self._operator.device

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are recorded for one of its tensors."""
        return self._operator.requires_grad

    def detach(self) -> Self:
        return self._like(self._operator.detach())

    def _moved(self, dtype: torch.dtype | None, device: torch.device | None) -> Self:
        operator = self._operator.to(dtype=dtype, device=device)
        return self if operator is self._operator else self._like(operator)
