"""A user's subclass of one of torch's layers, made again over the layer of this package.

Its methods run as they are: ``super().forward(...)`` is then ours. What such a method may use are the names that both
layers have.
"""

from collections.abc import Iterator
from functools import cache
from types import CellType, CodeType, FunctionType
from typing import Any

from torch import nn

from ..._rules import check
from ._replacing import content

#: What a subclass may define of torch's layers besides attributes of its own.
_MAY = {"__init__", "__doc__", "forward", "extra_repr", "reset_parameters", "flatten_parameters"}
#: Of a class itself, not of what it defines.
_OF_THE_CLASS = ("__dict__", "__weakref__", "__abstractmethods__", "_abc_impl", "__classcell__")


def unfit(kind: Any, theirs: Any, ours: Any) -> str | None:
    """Why a subclass of torch's layer cannot be made again over ours; None if it can."""
    one = theirs(1, 1, device="meta")
    there = {*dir(theirs), *vars(one)} - set(dir(nn.Module))
    here = {*dir(ours), *vars(ours(1, 1, device="meta"))}
    own = {each.__name__ for each in _own(kind)}
    for each in _own(kind):
        name = each.__name__
        for key, value in vars(each).items():
            if key in _OF_THE_CLASS or (key.startswith("__") and key != "__call__"):
                continue
            if key in there - _MAY:
                return f"{name} has {check.article(key)} of its own"
            if key in here - there - set(dir(nn.Module)):
                return f"{key} of {name} means another thing in this package"
            for function in _functions(value):
                used = set(_names(function.__code__))
                if key == "forward" and not ("super" in used and "forward" in used):
                    return f"{name} has a forward of its own"
                private = {theirs.__name__, *own, "_VF"} | {word for word in used if word in there - here}
                if ours._cell == "gru":  # weights of other shapes
                    private |= {word for word in used if word.startswith(("weight_", "bias_"))}
                if found := sorted(private & used):
                    return f"{key} of {name} uses {found[0]}"
                inside = [content(cell) for cell in function.__closure__ or ()]
                if any(isinstance(f, FunctionType) and "__class__" in f.__code__.co_freevars for f in inside):
                    return f"{key} of {name} is decorated"
    return None


@cache
def rebased(kind: Any, theirs: Any, ours: Any) -> Any:
    """The subclass over our layer: its classes made again, in their order, torch's replaced by ours."""
    return _Rebased(theirs, ours).of(kind)


class _Rebased:
    def __init__(self, theirs: Any, ours: Any) -> None:
        self._made: dict[Any, Any] = {theirs: ours}
        self._pair = theirs, ours

    def of(self, kind: Any) -> Any:
        """What stands for a class."""
        if kind in self._made or not issubclass(kind, (nn.RNNBase, nn.RNNCellBase)):
            return self._made.get(kind, kind)
        if kind.__module__.startswith("torch."):
            return nn.Module
        cell = CellType()
        own = {name: _rebound(value, cell) for name, value in vars(kind).items() if name not in _OF_THE_CLASS}
        bases = tuple(dict.fromkeys(self.of(base) for base in kind.__bases__))
        own |= {"_of_torch": (kind, *self._pair), "__reduce_ex__": _reduced}
        made = self._made[kind] = type(kind)(kind.__name__, bases, own)
        cell.cell_contents = made
        return made


def _reduced(layer: Any, _protocol: int) -> Any:
    """For copies and pickle, which find the class that it was made of."""
    return _blank, type(layer)._of_torch, layer.__getstate__()


def _blank(kind: Any, theirs: Any, ours: Any) -> Any:
    made = rebased(kind, theirs, ours)
    return made.__new__(made)


def _own(kind: Any) -> list[Any]:
    """The classes between a subclass and torch, those that are layers."""
    return [
        each
        for each in kind.__mro__
        if issubclass(each, (nn.RNNBase, nn.RNNCellBase)) and not each.__module__.startswith("torch.")
    ]


def _functions(value: Any) -> Iterator[Any]:
    """The functions of an attribute of a class."""
    if isinstance(value, property):
        for each in (value.fget, value.fset, value.fdel):
            yield from _functions(each)
    elif isinstance(value, classmethod | staticmethod):
        yield from _functions(value.__func__)
    elif isinstance(value, FunctionType):
        yield value


def _names(code: CodeType) -> Iterator[str]:
    """All that code, and code inside it, refers to by name, or has as a word."""
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
        elif isinstance(constant, str):
            yield constant


def _rebound(value: Any, cell: CellType) -> Any:
    """An attribute whose functions know another class as theirs."""
    if isinstance(value, property):
        getter, setter, deleter = (_rebound(each, cell) for each in (value.fget, value.fset, value.fdel))
        return property(getter, setter, deleter, value.__doc__)
    if isinstance(value, classmethod | staticmethod):
        return type(value)(_rebound(value.__func__, cell))
    if not isinstance(value, FunctionType) or "__class__" not in value.__code__.co_freevars:
        return value
    cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    closure = tuple([cell if name == "__class__" else old for name, old in cells])
    new = FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, closure)
    new.__kwdefaults__, new.__qualname__, new.__doc__ = value.__kwdefaults__, value.__qualname__, value.__doc__
    new.__module__, new.__annotations__ = value.__module__, value.__annotations__
    vars(new).update(vars(value))
    return new
