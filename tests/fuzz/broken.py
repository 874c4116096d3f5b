"""Packages with one fault each, wrapped around the real one; the fuzz must reject each of them.

`BROKEN` is a table: the fault, the family of calls that must detect it, and the functions it affects.
"""

import numpy as np

from support.broken import first_row, nameless, on_array, on_errors, on_results, without

METHODS = ("matrix", "apply", "apply_adjoint", "apply_vjp", "matrix_vjp")


def forgiving(*kinds):
    """An error becomes a result."""

    def wrap(function):
        def broken(*args, **keywords):
            try:
                return function(*args, **keywords)
            except kinds:
                return np.zeros(1)

        return broken

    return wrap


def spoils(name):
    """Overwrites an argument after use."""

    def wrap(function):
        def broken(*args, **keywords):
            result, a = function(*args, **keywords), keywords[name]
            if isinstance(a, np.ndarray) and a.flags.writeable:
                a[...] = 0
            return result

        return broken

    return wrap


def refuses_empty(function):
    """Like code that divides by a number of rows."""

    def broken(*args, **keywords):
        if any(isinstance(a, np.ndarray) and not a.size for a in keywords.values()):
            raise ZeroDivisionError("division by zero")
        return function(*args, **keywords)

    return broken


def finite(a):
    """NaN and infinity silently become numbers."""
    return np.nan_to_num(a) if isinstance(a, np.ndarray) and a.dtype.kind in "fc" else a


def reversed_(a):
    """Steps, or the members of a stack, counted from the other end."""
    return a[::-1] if isinstance(a, np.ndarray) or hasattr(a, "batch_shape") else a


def cut_off(t):
    """A tensor as it is, of which autograd knows nothing."""
    return t.detach() + 0 * t if hasattr(t, "detach") else t


SWAPPED = {ValueError: TypeError, TypeError: ValueError}
swapped = on_errors(lambda error: SWAPPED.get(type(error), RuntimeError)(str(error)))
misnamed = on_errors(lambda error: type(error)("argument_2" + str(error)[1:]))
conjugated, complex_, enlarged = on_results(np.conj), on_results(lambda a: a + 0j), on_results(lambda a: a * 1.001)

OPERATORS, CELLS, LARGE, UNCHECKED = "operators", "cells", "large", "unchecked"
NUMPY, TORCH = "numpy", "torch"

# fault, the family that must detect it, the package, the change, functions or methods
BROKEN = (
    # rejects valid arguments
    ("empty arrays are refused", OPERATORS, NUMPY, refuses_empty, "apply"),
    ("check_finite=False is ignored", UNCHECKED, NUMPY, without("check_finite"), *METHODS),
    # gives wrong numbers
    ("W scaled", "extremes", NUMPY, enlarged, "matrix"),
    ("W x scaled", OPERATORS, TORCH, enlarged, "apply"),
    ("both parts of a state scaled", CELLS, TORCH, enlarged, "lstm"),
    ("reverse ignored", CELLS, NUMPY, without("reverse"), "recurrence"),
    ("marks of the other order", CELLS, NUMPY, on_array("starts", reversed_), "recurrence"),
    ("blocks in the other order", CELLS, NUMPY, on_array("operator", reversed_), "BlockDiagonal"),
    # gives wrong gradients
    ("one row counts", OPERATORS, NUMPY, first_row, "apply_vjp"),
    ("gradient scaled", LARGE, NUMPY, enlarged, "matrix_vjp"),
    ("gradient unconjugated", OPERATORS, NUMPY, conjugated, "matrix_vjp"),
    ("lengths ignored on the way back", CELLS, NUMPY, without("lengths"), "recurrence_vjp"),
    ("a weight without gradient", CELLS, TORCH, on_array("w", cut_off), "gru"),
    # returns another type, or memory of an argument
    ("always complex", OPERATORS, NUMPY, complex_, "apply"),
    ("an argument is overwritten", OPERATORS, NUMPY, spoils("x"), "apply"),
    # accepts invalid arguments
    ("NaN taken for a number", OPERATORS, NUMPY, on_array("x", finite), "apply"),
    ("NaN lost", UNCHECKED, NUMPY, on_results(finite), "matrix", "apply"),
    ("any type", OPERATORS, NUMPY, forgiving(TypeError), "apply"),
    ("any shape", OPERATORS, NUMPY, forgiving(ValueError), "matrix_vjp"),
    # raises the wrong error
    ("argument not named", OPERATORS, TORCH, nameless, "__init__"),
    ("another argument named", CELLS, NUMPY, misnamed, "gru"),
    ("another exception", CELLS, NUMPY, swapped, "recurrence"),
)
