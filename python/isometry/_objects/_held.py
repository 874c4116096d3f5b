"""What operators with declared arguments share in both packages: attributes, stacks, the same on changed arrays."""

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Self

from isometry._objects._declaration import Argument, Declaration


class Held:
    """An operator that holds its arguments in `_arrays`; `_hold` takes them, and `_stack` is the package's."""

    __slots__ = ()

    _declaration: ClassVar[Declaration]
    _stack: ClassVar[Any]
    _arrays: tuple[Any, ...]

    if TYPE_CHECKING:

        @property
        def _flat(self) -> tuple[Argument, ...]: ...
        def _hold(self, *values: Any) -> None: ...

    @classmethod
    def _declare(cls, declaration: Declaration) -> None:
        cls._declaration = declaration
        for i, argument in enumerate(declaration.arguments):
            setattr(cls, argument.name, _attribute(i, argument))

    @classmethod
    def _stacked(cls, members: Sequence[Self], batch: tuple[int, ...]) -> Self:
        """Single operators as a stack; numbers and shapes are those of all."""
        made: list[Any] = []
        for t, *own in zip(members[0]._flat, *(member._arrays for member in members), strict=True):
            if t.kind not in ("number", "shape") and own[0] is not None:
                own[0] = cls._stack(own)[: prod(batch)].reshape(*batch, *own[0].shape)
            made.append(own[0])
        return cls._of(made)

    def _remade(self, change: Callable[[Argument, Any], Any]) -> Self:
        """The same operator on changed arrays; itself where nothing changes."""
        made = [None if a is None else change(t, a) for t, a in zip(self._flat, self._arrays, strict=True)]
        if all(a is b for a, b in zip(made, self._arrays, strict=True)):
            return self
        return self._of(made)

    @classmethod
    def _of(cls, arrays: Sequence[Any]) -> Self:
        operator = cls.__new__(cls)
        operator._hold(*arrays)
        return operator


def _attribute(i: int, argument: Argument) -> property:
    """The property that returns an argument."""
    if argument.kind == "number":
        return property(lambda op: op._arrays[i].item(), doc=f"The argument `{argument.name}`, a number.")
    text = f"The argument `{argument.name}`, shape `{argument.form()}`; None if it was not given."
    if argument.list:
        return property(lambda op: list(op._arrays[i:]), doc=f"The argument `{argument.name}`, a list.")
    return property(lambda op: op._arrays[i], doc=text)
