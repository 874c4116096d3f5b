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


def refuses(function):
    def broken(*args, **keywords):
        raise ValueError("vectors must be other vectors, upper another upper, weight another weight")

    return broken


def refuses_empty(function):
    """Like code that divides by a number of rows."""

    def broken(*args, **keywords):
        if any(isinstance(a, np.ndarray) and not a.size for a in keywords.values()):
            raise ZeroDivisionError("division by zero")
        return function(*args, **keywords)

    return broken


def contiguous(a):
    """Reads the memory behind an array as if it were contiguous."""
    if not isinstance(a, np.ndarray) or not a.ndim:
        return a
    return np.asarray(a).ravel(order="K").reshape(a.shape)


def finite(a):
    """NaN and infinity silently become numbers."""
    return np.nan_to_num(a) if isinstance(a, np.ndarray) and a.dtype.kind in "fc" else a


def reversed_(a):
    """Steps, or the members of a stack, counted from the other end."""
    return a[::-1] if isinstance(a, np.ndarray) or hasattr(a, "batch_shape") else a


def scaled(a):
    """Relative error of a thousandth, of the same type."""
    return a * 1.001


def last_missing(a):
    """A gradient from which the last term is missing."""
    a = np.array(a)
    a[..., -1:] = 0
    return a


def cut_off(t):
    """A tensor as it is, of which autograd knows nothing."""
    return t.detach() + 0 * t if hasattr(t, "detach") else t


SWAPPED = {ValueError: TypeError, TypeError: ValueError}
swapped = on_errors(lambda error: SWAPPED.get(type(error), RuntimeError)(str(error)))
misnamed = on_errors(lambda error: type(error)("argument_2" + str(error)[1:]))
conjugated, complex_ = on_results(np.conj), on_results(lambda a: a + 0j)
enlarged, cut = on_results(scaled), on_results(last_missing)
accepts, takes_any_type = forgiving(ValueError), forgiving(TypeError)

OPERATORS, CELLS, LARGE, UNCHECKED = "operators", "cells", "large", "unchecked"
NUMPY, TORCH = "numpy", "torch"

# fault, the family that must detect it, the package, the change, functions or methods
BROKEN = (
    # rejects valid arguments
    ("every constructor refuses", OPERATORS, NUMPY, refuses, "__init__"),
    ("empty arrays are refused", OPERATORS, NUMPY, refuses_empty, "apply"),
    ("check_finite=False is ignored", UNCHECKED, NUMPY, without("check_finite"), *METHODS),
    # gives wrong numbers
    ("W scaled", OPERATORS, NUMPY, enlarged, "matrix"),
    ("W scaled", "extremes", NUMPY, enlarged, "matrix"),
    ("W x scaled", OPERATORS, TORCH, enlarged, "apply"),
    ("W x unconjugated", OPERATORS, NUMPY, conjugated, "apply"),
    ("states scaled", CELLS, NUMPY, enlarged, "recurrence"),
    ("both parts of a state scaled", CELLS, TORCH, enlarged, "lstm"),
    ("lengths ignored", CELLS, NUMPY, without("lengths"), "recurrence"),
    ("reverse ignored", CELLS, NUMPY, without("reverse"), "recurrence"),
    ("bias ignored", CELLS, TORCH, without("bias"), "recurrence"),
    ("marks ignored", CELLS, NUMPY, without("starts", "start_state"), "recurrence"),
    ("marks of the other order", CELLS, NUMPY, on_array("starts", reversed_), "recurrence"),
    ("reset ignored", CELLS, TORCH, without("reset"), "gru"),
    ("blocks in the other order", CELLS, NUMPY, on_array("operator", reversed_), "BlockDiagonal"),
    # gives wrong gradients
    ("one row counts", OPERATORS, NUMPY, first_row, "apply_vjp"),
    ("a term is missing", OPERATORS, NUMPY, cut, "matrix_vjp"),
    ("gradient scaled", LARGE, NUMPY, enlarged, "matrix_vjp"),
    ("gradient unconjugated", OPERATORS, NUMPY, conjugated, "matrix_vjp"),
    ("lengths ignored on the way back", CELLS, NUMPY, without("lengths"), "recurrence_vjp"),
    ("gradient scaled", CELLS, NUMPY, enlarged, "recurrence_vjp"),
    ("a weight without gradient", CELLS, TORCH, on_array("w", cut_off), "gru"),
    # returns another type, or memory of an argument
    ("always complex", OPERATORS, NUMPY, complex_, "apply"),
    ("an argument is overwritten", OPERATORS, NUMPY, spoils("x"), "apply"),
    ("strides ignored", OPERATORS, NUMPY, on_array("x", contiguous), "apply"),
    # accepts invalid arguments
    ("NaN taken for a number", OPERATORS, NUMPY, on_array("x", finite), "apply"),
    ("NaN lost", UNCHECKED, NUMPY, on_results(finite), "matrix", "apply"),
    ("any type", OPERATORS, NUMPY, takes_any_type, "apply"),
    ("any shape", OPERATORS, NUMPY, accepts, "matrix_vjp"),
    # raises the wrong error
    ("argument not named", OPERATORS, NUMPY, nameless, *METHODS),
    ("argument not named", OPERATORS, TORCH, nameless, "__init__"),
    ("another argument named", CELLS, NUMPY, misnamed, "gru"),
    ("another exception", OPERATORS, NUMPY, swapped, "__init__"),
    ("another exception", CELLS, NUMPY, swapped, "recurrence"),
)
