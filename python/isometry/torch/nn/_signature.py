"""Constructors of layers for messages and `help`: under the name of the class, with the keywords that they pass on."""

import inspect
import re
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, Never, Unpack, cast, get_args, get_origin

from ..._rules import check
from . import _contract

#: Parameters of the base class that only have messages.
_UNSHOWN = ("output", "unknown")


def name_constructor(cls: type[Any], base: Callable[..., None]) -> None:
    """Give a class without a constructor the inherited one under its own name, which Python's messages have, and show
    the keywords of the base class's constructor that a constructor passes on.
    """
    own = cls.__init__
    if not isinstance(own, FunctionType):
        return
    if "__init__" not in vars(cls):
        inherited, own = (
            own,
            FunctionType(own.__code__, own.__globals__, own.__name__, own.__defaults__, own.__closure__),
        )
        own.__kwdefaults__, own.__annotations__ = inherited.__kwdefaults__, inherited.__annotations__
        own.__doc__, own.__qualname__ = inherited.__doc__, f"{cls.__qualname__}.__init__"
        type.__setattr__(cls, "__init__", own)
    signature = inspect.signature(own)
    passed = _passed_on(list(signature.parameters.values())[-1])
    if passed is not None:
        mine = [p for p in signature.parameters.values() if p.name not in _UNSHOWN and p.kind is not p.VAR_KEYWORD]
        names = {p.name for p in mine}
        more = [
            p.replace(kind=p.KEYWORD_ONLY)
            for p in inspect.signature(base).parameters.values()
            if p.name in passed and p.name not in names
        ]
        cast(Any, own).__signature__ = signature.replace(parameters=[*mine, *more])


def _passed_on(last: inspect.Parameter) -> Iterable[str] | None:
    """The keywords that the last parameter of a constructor stands for; None where its type does not say."""
    if last.kind is not last.VAR_KEYWORD:
        return None
    said = last.annotation
    if said in (Never, "Never"):
        return ()
    if typed := re.fullmatch(r"Unpack\[(\w+)\]", str(said)):  # of a module whose annotations are not evaluated
        return getattr(getattr(_contract, typed[1], None), "__annotations__", None)
    (named,) = get_args(said) if get_origin(said) is Unpack else (None,)
    return named.__annotations__ if named and named.__module__ == _contract.__name__ else None


def refuse(layer: object, unknown: Iterable[str]) -> None:
    """Keywords that the class of a layer does not have."""
    for name in unknown:
        check.unknown_keyword(f"{type(layer).__name__}.__init__", name, inspect.signature(type(layer)).parameters)
