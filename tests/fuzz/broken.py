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


def first_of_the_stack(function):
    """Every operator of a stack acts as the first one."""

    def broken(self, **keywords):
        w = function(self, **keywords)
        return np.broadcast_to(w[(0,) * len(self.batch_shape)], w.shape).copy() if w.size else w

    return broken


def in_single(a):
    """Computed in single precision."""
    a = np.asarray(a)
    return a.astype({"c": np.complex64, "f": np.float32}[a.dtype.kind]).astype(a.dtype) if a.dtype.kind in "fc" else a


def cut_off(t):
    """A tensor as it is, of which autograd knows nothing."""
    return t.detach() + 0 * t if hasattr(t, "detach") else t


def both_factors(function):
    """Accepts a sign together with phases, and drops it."""

    def broken(self, *args, **keywords):
        if {"sign", "phases"} <= set(keywords):
            del keywords["sign"]
        function(self, *args, **keywords)

    return broken


def scaled_where(holds):
    """Results are wrong where this holds of what is given."""
    return lambda function: lambda **given: (on_results(scaled)(function) if holds(given) else function)(**given)


last_scaled = scaled_where(lambda given: given.get("output") == "last")
members_scaled = scaled_where(lambda given: np.ndim(given["x"]) == 4)


SWAPPED = {ValueError: TypeError, TypeError: ValueError}
swapped = on_errors(lambda error: SWAPPED.get(type(error), RuntimeError)(str(error)))
misnamed = on_errors(lambda error: type(error)("argument_2" + str(error)[1:]))
conjugated, single, complex_ = on_results(np.conj), on_results(in_single), on_results(lambda a: a + 0j)
enlarged, cut = on_results(scaled), on_results(last_missing)
accepts, takes_any_type = forgiving(ValueError), forgiving(TypeError)

OPERATORS, CELLS, LARGE, UNCHECKED = "operators", "cells", "large", "unchecked"
NUMPY, TORCH = "numpy", "torch"

# fault, the family that must detect it, the package, the change, functions or methods
BROKEN = (
    # rejects valid arguments
    ("every constructor refuses", OPERATORS, NUMPY, refuses, "__init__"),
    ("every constructor refuses", LARGE, NUMPY, refuses, "__init__"),
    ("every constructor refuses", OPERATORS, TORCH, refuses, "__init__"),
    ("empty arrays are refused", OPERATORS, NUMPY, refuses_empty, "apply"),
    ("check_finite=False is ignored", UNCHECKED, NUMPY, without("check_finite"), *METHODS),
    # gives wrong numbers
    ("W scaled", OPERATORS, NUMPY, enlarged, "matrix"),
    ("W scaled", "extremes", NUMPY, enlarged, "matrix"),
    ("W x scaled", OPERATORS, NUMPY, enlarged, "apply"),
    ("W x scaled", LARGE, NUMPY, enlarged, "apply"),
    ("W x scaled", OPERATORS, TORCH, enlarged, "apply"),
    ("W x in single precision", OPERATORS, NUMPY, single, "apply"),
    ("W x unconjugated", OPERATORS, NUMPY, conjugated, "apply"),
    ("first of the stack", OPERATORS, NUMPY, first_of_the_stack, "matrix"),
    ("states scaled", CELLS, NUMPY, enlarged, "recurrence"),
    ("both parts of a state scaled", CELLS, TORCH, enlarged, "lstm"),
    ("the last state scaled", CELLS, NUMPY, last_scaled, "goru"),
    ("members scaled", CELLS, NUMPY, members_scaled, "gru"),
    ("lengths ignored", CELLS, NUMPY, without("lengths"), "recurrence"),
    ("lengths ignored", CELLS, TORCH, without("lengths"), "gru"),
    ("reverse ignored", CELLS, NUMPY, without("reverse"), "recurrence"),
    ("h0 ignored", CELLS, NUMPY, without("h0"), "recurrence"),
    ("bias ignored", CELLS, TORCH, without("bias"), "recurrence"),
    ("marks ignored", CELLS, NUMPY, without("starts", "start_state"), "recurrence"),
    ("marks ignored", CELLS, TORCH, without("starts", "start_state"), "gru"),
    ("the state before marks ignored", CELLS, NUMPY, without("start_state"), "recurrence"),
    ("marks of the other order", CELLS, NUMPY, on_array("starts", reversed_), "recurrence"),
    ("slope ignored", CELLS, NUMPY, without("slope"), "recurrence"),
    ("activation_on ignored", CELLS, NUMPY, without("activation_on"), "recurrence"),
    ("reset ignored", CELLS, TORCH, without("reset"), "gru"),
    ("blocks in the other order", CELLS, NUMPY, on_array("operator", reversed_), "BlockDiagonal"),
    # gives wrong gradients
    ("one row counts", OPERATORS, NUMPY, first_row, "apply_vjp"),
    ("a term is missing", OPERATORS, NUMPY, cut, "matrix_vjp"),
    ("a term is missing", LARGE, NUMPY, cut, "matrix_vjp"),
    ("gradient scaled", LARGE, NUMPY, enlarged, "matrix_vjp"),
    ("gradient unconjugated", OPERATORS, NUMPY, conjugated, "matrix_vjp"),
    ("lengths ignored on the way back", CELLS, NUMPY, without("lengths"), "recurrence_vjp"),
    ("marks ignored on the way back", CELLS, NUMPY, without("starts", "start_state"), "recurrence_vjp"),
    ("gradient scaled", CELLS, NUMPY, enlarged, "recurrence_vjp"),
    ("gradient scaled", CELLS, NUMPY, enlarged, "lstm_vjp"),
    ("an argument without gradient", CELLS, TORCH, on_array("input_weight", cut_off), "recurrence"),
    ("a weight without gradient", CELLS, TORCH, on_array("w", cut_off), "gru"),
    ("the state before marks without gradient", CELLS, TORCH, on_array("start_state", cut_off), "gru"),
    # returns another type, or memory of an argument
    ("always complex", OPERATORS, NUMPY, complex_, "apply"),
    ("an argument is overwritten", OPERATORS, NUMPY, spoils("x"), "apply"),
    ("strides ignored", OPERATORS, NUMPY, on_array("x", contiguous), "apply"),
    # accepts invalid arguments
    ("NaN taken for a number", OPERATORS, NUMPY, on_array("x", finite), "apply"),
    ("NaN lost", UNCHECKED, NUMPY, on_results(finite), "matrix", "apply"),
    ("any type", OPERATORS, NUMPY, takes_any_type, "apply"),
    ("any shape", OPERATORS, NUMPY, accepts, "matrix_vjp"),
    ("any shape", OPERATORS, TORCH, accepts, "apply"),
    ("exclusive arguments", OPERATORS, NUMPY, both_factors, "__init__"),
    ("exclusive arguments", OPERATORS, TORCH, both_factors, "__init__"),
    # raises the wrong error
    ("argument not named", OPERATORS, NUMPY, nameless, *METHODS),
    ("argument not named", OPERATORS, TORCH, nameless, "__init__"),
    ("argument not named", CELLS, TORCH, nameless, "recurrence"),
    ("another argument named", CELLS, NUMPY, misnamed, "gru"),
    ("another exception", OPERATORS, NUMPY, swapped, "__init__"),
    ("another exception", CELLS, NUMPY, swapped, "recurrence"),
    ("another exception", CELLS, TORCH, swapped, "recurrence"),
)
