"""What operators made of one other share on NumPy arrays: adjoints, first columns, block-diagonal matrices."""

from __future__ import annotations

from typing import Any, Generic, Self

from numpy.typing import DTypeLike

from isometry._rules.index import Key
from isometry.operators._immutable import Combined, Op


class OfOne(Combined, Generic[Op]):
    """An operator made of another; `_like` makes the same of a converted one."""

    __slots__ = ("operator",)
    operator: Op

    def _like(self, operator: Any) -> Self:
        return type(self)(operator)  # type: ignore[call-arg]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.operator,)

    def _parts(self) -> list[str]:
        return [repr(self.operator)]

    def astype(self, dtype: DTypeLike) -> Self:
        operator = self.operator.astype(dtype)
        return self if operator is self.operator else self._like(operator)

    def _picked(self, key: Key) -> Self:
        return self._like(self.operator[key.entries])

    # -------------------------------------------------------- hooks

    def _made_of(self) -> tuple[Any, ...]:
        return (self.operator,)

    def _check_held(self, check_finite: bool) -> None:
        self.operator._check_held(check_finite)

    def _members(self) -> tuple[Any, ...]:
        return self.operator._members()

    def _local(self) -> Self:
        return self._like(self.operator._local())
