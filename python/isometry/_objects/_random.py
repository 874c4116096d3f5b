"""What the `random` of every object has in both faces: keywords for all of them, and stacks."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from math import prod
from typing import Any, TypeVar, cast

from isometry._rules import check, check_expression

_Random = TypeVar("_Random", bound=Callable[..., Any])


def stackable(
    keywords: Mapping[str, str], begin: Callable[[Any], Any] = lambda options: options
) -> Callable[[_Random], _Random]:
    """A decorator of ``random(cls, ..., **options)``, which then draws stacks of a `batch_shape`, one member after
    another; `begin` gives the options of all members. `help` shows the keywords, by name and type.
    """
    shown = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, kind, default in (*((*item, None) for item in keywords.items()), ("batch_shape", "Sequence[int]", ()))
    ]

    def decorator(draw: _Random) -> _Random:
        own = inspect.signature(draw)
        places = [name for name, p in own.parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
        signature = own.replace(parameters=[*list(own.parameters.values())[:-1], *shown])

        @wraps(draw)
        def random(cls: type[Any], *args: Any, **options: Any) -> Any:
            if len(args) > len(places):
                check_expression.random_places(cls.__name__, places, len(args))
            for name in options.keys() - signature.parameters.keys():
                check.unknown_keyword(f"{cls.__name__}.random", name, list(signature.parameters)[1:])
            batch = check_expression.batch(options.pop("batch_shape", ()))
            if batch == ():
                return draw(cls, *args, **options)
            options = begin(options)  # an empty stack has the shapes of a member
            return cls._stacked([draw(cls, *args, **options) for _ in range(max(prod(batch), 1))], batch)

        random.__signature__ = signature  # type: ignore[attr-defined]
        return cast(_Random, random)

    return decorator
