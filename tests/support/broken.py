"""The real thing with one fault, which a test must reject: a package, or a class, of which functions are wrapped.

A fault is a function of a function. `broken(owner, fault, *names)` makes of a package one in which these functions pass
through it, or these methods of all operators; of a class one in which these methods do.
"""

import functools
import types

import numpy as np

from faces import FACES
from registry import OBJECTS

CLASSES = [entry.cls for entry in OBJECTS.values()]


def broken(owner, fault, *names):
    """A broken class, or the broken package of a face."""
    if isinstance(owner, type):
        return type(f"{owner.__name__} {fault.__name__}", (owner,), dict(wrapped(owner, fault, names)))
    own = FACES[owner]().package
    package = types.SimpleNamespace(**{name: getattr(own, name) for name in own.__all__})
    functions = [name for name in names if name in own.__all__]
    for name in functions:
        setattr(package, name, functools.wraps(getattr(own, name))(fault(getattr(own, name))))
    for name in CLASSES if len(functions) < len(names) else ():
        kept = getattr(own, name)
        setattr(package, name, type(name, (kept,), dict(wrapped(kept, fault, names))))
    return package


def wrapped(cls, fault, names):
    """The methods, or class methods, that pass through a fault."""
    for name in names:
        if hasattr(cls, name):
            kept = getattr(cls, name)
            method = functools.wraps(kept)(fault(getattr(kept, "__func__", kept)))
            yield name, classmethod(method) if hasattr(kept, "__func__") else method


# ---------------------------------------------------------------- kinds of faults


def on_results(change, gradients=True, arrays=True):
    """Arrays of the result pass through `change`: the gradients, in dictionaries, and all others."""

    def through(result, own=arrays):
        if isinstance(result, dict):
            return {k: through(a, gradients) for k, a in result.items()}
        if isinstance(result, tuple):
            return tuple(through(a, own) for a in result)
        return change(result) if own and result is not None else result

    return lambda function: lambda *args, **keywords: through(function(*args, **keywords))


def with_keywords(change):
    """Input keywords pass through `change`."""
    return lambda function: lambda *args, **keywords: function(*args, **change(dict(keywords)))


def without(*names):
    return with_keywords(lambda keywords: {k: a for k, a in keywords.items() if k not in names})


def on_array(name, change):
    """One array argument passes through `change`."""
    return with_keywords(lambda keywords: {k: change(a) if k == name else a for k, a in keywords.items()})


def on_errors(change):
    """Errors pass through `change`."""

    def wrap(function):
        def broken(*args, **keywords):
            try:
                return function(*args, **keywords)
            except (ValueError, TypeError) as error:
                raise change(error) from None

        return broken

    return wrap


nameless = on_errors(lambda error: type(error)("bad input"))


def first_row(function):
    """Counts only the first row of a batch in the gradients of the arguments."""

    def broken(self, x, ct, **keywords):
        only = np.array(ct, copy=True)
        only.reshape(-1, only.shape[-1])[1:] = 0
        return function(self, x, only, **keywords)[0], function(self, x, ct, **keywords)[1]

    return broken
