"""Packages with one fault each, wrapped around the real one; the fuzz must reject each of them.

`BROKEN` is a table: the fault, the family of calls that must detect it, and the functions it affects.
"""

import functools
import types

import numpy as np

from fuzz import packages
from registry import OBJECTS

CLASSES = [entry.cls for entry in OBJECTS.values()]
METHODS = ("matrix", "apply", "apply_adjoint", "apply_vjp", "matrix_vjp")


def package(face, **changes):
    """The package of a face with some of its names replaced."""
    own = packages.real(face).package
    return types.SimpleNamespace(**{name: getattr(own, name) for name in own.__all__} | changes)


def functions(face, wrap, *names):
    """A package in which functions pass through `wrap`; the names may be dotted."""
    broken = package(face)
    for name in names:
        owner, _, last = name.rpartition(".")
        if owner:
            setattr(broken, owner, types.SimpleNamespace(**vars(getattr(broken, owner))))
        place = getattr(broken, owner) if owner else broken
        setattr(place, last, functools.wraps(getattr(place, last))(wrap(getattr(place, last))))
    return broken


def methods(face, wrap, *names):
    """A package in which methods, or class methods, of every operator pass through `wrap`."""
    changes = {}
    for name in CLASSES:
        own = getattr(packages.real(face).package, name)
        broken = {}
        for method in names:
            if hasattr(own, method):
                kept = getattr(own, method)
                wrapped = functools.wraps(kept)(wrap(getattr(kept, "__func__", kept)))
                broken[method] = classmethod(wrapped) if hasattr(kept, "__func__") else wrapped
        changes[name] = type(name, (own,), broken)
    return package(face, **changes)


# ---------------------------------------------------------------- kinds of faults


def on_results(change):
    """Arrays of the result pass through `change`, including those in tuples and dictionaries."""

    def through(result):
        if isinstance(result, dict):
            return {k: through(a) for k, a in result.items()}
        if isinstance(result, tuple):
            return tuple(map(through, result))
        return result if result is None else change(result)

    return lambda function: lambda *args, **keywords: through(function(*args, **keywords))


def with_keywords(change):
    """Input keywords pass through `change`."""
    return lambda function: lambda *args, **keywords: function(*args, **change(dict(keywords)))


def without(*names):
    return with_keywords(lambda keywords: {k: a for k, a in keywords.items() if k not in names})


def always(**fixed):
    return with_keywords(lambda keywords: keywords | fixed)


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


def real_part(a):
    return a.real if isinstance(a, np.ndarray) and a.dtype.kind == "c" else a


def scaled(a):
    """Relative error of a thousandth, of the same type."""
    return a * 1.001


def last_missing(a):
    """A gradient from which the last term is missing."""
    a = np.array(a)
    a[..., -1:] = 0
    return a


def with_first_row(function):
    """Counts only the first row of a batch in the gradients of the arguments."""

    def broken(self, x, ct, **keywords):
        only = np.array(ct, copy=True)
        only.reshape(-1, only.shape[-1])[1:] = 0
        return function(self, x, only, **keywords)[0], function(self, x, ct, **keywords)[1]

    return broken


def first_of_the_stack(function):
    """Every operator of a stack acts as the first one."""

    def broken(self, **keywords):
        w = function(self, **keywords)
        return np.broadcast_to(w[(0,) * len(self.batch_shape)], w.shape).copy() if w.size else w

    return broken


def half_of_modrelu(function):
    """The gradient of modReLU without the term of b / |z|."""

    def broken(z, name, ct, **keywords):
        z_bar, bias_bar = function(z, name, ct, **keywords)
        return (np.where(z_bar != 0, ct, 0).astype(z_bar.dtype) if name == "modrelu" else z_bar), bias_bar

    return broken


def negated(w):
    return -np.asarray(w)


def reseeded(function):
    """Draws from a separate random source."""

    def broken(cls, *args, rng=None, **keywords):
        return function(cls, *args, rng=np.random.default_rng(), **keywords)

    return broken


def in_single(a):
    """Computed in single precision."""
    a = np.asarray(a)
    return a.astype({"c": np.complex64, "f": np.float32}[a.dtype.kind]).astype(a.dtype) if a.dtype.kind in "fc" else a


def detached(function):
    """A torch function whose result does not depend on its last tensor, for autograd."""
    import torch

    def broken(*args, **keywords):
        keywords = {k: a.detach() if k == "input_weight" else a for k, a in keywords.items()}
        return function(*args, **keywords) + 0 * sum(a.sum() for a in keywords.values() if isinstance(a, torch.Tensor))

    return broken


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


def itself(function):
    """Returns a real argument itself as the result."""
    return lambda **keywords: keywords["z"] if keywords["name"] == "identity" else function(**keywords)


SWAPPED = {ValueError: TypeError, TypeError: ValueError}
nameless = on_errors(lambda error: type(error)("bad input"))
swapped = on_errors(lambda error: SWAPPED.get(type(error), RuntimeError)(str(error)))
misnamed = on_errors(lambda error: type(error)("argument_2" + str(error)[1:]))
conjugated, single, complex_ = on_results(np.conj), on_results(in_single), on_results(lambda a: a + 0j)
enlarged, doubled, cut = on_results(scaled), on_results(lambda a: 2 * a), on_results(last_missing)
accepts, takes_any_type = forgiving(ValueError), forgiving(TypeError)

OPERATORS, LAYERS, MAKERS, LARGE = "operators", "recurrences", "constructors", "large"
ACTIVATIONS, MEASURES, UNCHECKED, SEQUENCES, CELLS = "activations", "measures", "unchecked", "sequences", "cells"
IN_METHODS, IN_FUNCTIONS = (functools.partial(place, "numpy") for place in (methods, functions))
TORCH_METHODS, TORCH_FUNCTIONS = (functools.partial(place, "torch") for place in (methods, functions))

# fault, the family that must detect it, location, method, functions
BROKEN = (
    # rejects valid arguments
    ("every constructor refuses", OPERATORS, IN_METHODS, refuses, "__init__"),
    ("every constructor refuses", LAYERS, IN_METHODS, refuses, "__init__"),
    ("every constructor refuses", LARGE, IN_METHODS, refuses, "__init__"),
    ("every constructor refuses", OPERATORS, TORCH_METHODS, refuses, "__init__"),
    ("every constructor refuses", LAYERS, TORCH_METHODS, refuses, "__init__"),
    ("every inverse map refuses", MAKERS, IN_METHODS, refuses, "from_matrix"),
    ("every inverse map refuses", MAKERS, TORCH_METHODS, refuses, "from_matrix"),
    ("activate refuses", ACTIVATIONS, IN_FUNCTIONS, refuses, "activate"),
    ("empty arrays are refused", OPERATORS, IN_METHODS, refuses_empty, "apply"),
    ("check_finite=False is ignored", UNCHECKED, IN_METHODS, without("check_finite"), *METHODS),
    # gives wrong numbers
    ("W scaled", OPERATORS, IN_METHODS, enlarged, "matrix"),
    ("W scaled", "extremes", IN_METHODS, enlarged, "matrix"),
    ("W x scaled", OPERATORS, IN_METHODS, enlarged, "apply"),
    ("W x scaled", LARGE, IN_METHODS, enlarged, "apply"),
    ("W x scaled", OPERATORS, TORCH_METHODS, enlarged, "apply"),
    ("W x in single precision", OPERATORS, IN_METHODS, single, "apply"),
    ("W x unconjugated", OPERATORS, IN_METHODS, conjugated, "apply"),
    ("first of the stack", OPERATORS, IN_METHODS, first_of_the_stack, "matrix"),
    ("states scaled", LAYERS, IN_FUNCTIONS, enlarged, "recurrence"),
    ("lengths ignored", LAYERS, IN_FUNCTIONS, without("lengths"), "recurrence"),
    ("lengths ignored", LAYERS, TORCH_FUNCTIONS, without("lengths"), "recurrence"),
    ("reverse ignored", LAYERS, IN_FUNCTIONS, without("reverse"), "recurrence"),
    ("h0 ignored", LAYERS, IN_FUNCTIONS, without("h0"), "recurrence"),
    ("bias ignored", LAYERS, TORCH_FUNCTIONS, without("bias"), "recurrence"),
    ("marks ignored", LAYERS, IN_FUNCTIONS, without("starts", "start_state"), "recurrence"),
    ("marks ignored", LAYERS, TORCH_FUNCTIONS, without("starts", "start_state"), "recurrence"),
    ("the state before marks ignored", LAYERS, IN_FUNCTIONS, without("start_state"), "recurrence"),
    ("marks of the other order", LAYERS, IN_FUNCTIONS, on_array("starts", reversed_), "recurrence"),
    ("slope ignored", LAYERS, IN_FUNCTIONS, without("slope"), "recurrence"),
    ("activation_on ignored", LAYERS, IN_FUNCTIONS, without("activation_on"), "recurrence"),
    ("activations scaled", ACTIVATIONS, IN_FUNCTIONS, enlarged, "activate"),
    ("slope ignored", ACTIVATIONS, TORCH_FUNCTIONS, without("slope"), "activate"),
    ("real forms scaled", MEASURES, TORCH_FUNCTIONS, enlarged, "real_matrix"),
    ("real forms conjugated", MEASURES, IN_FUNCTIONS, on_array("w", np.conj), "real_matrix"),
    ("orthogonality_error doubled", MEASURES, IN_FUNCTIONS, doubled, "orthogonality_error"),
    ("numbers to be added scaled", MEASURES, IN_FUNCTIONS, enlarged, "tasks.adding"),
    ("marker at another step", MEASURES, IN_FUNCTIONS, always(marker_offset=1), "tasks.copying"),
    ("group ignored", MEASURES, IN_FUNCTIONS, without("group"), "tasks.permutations"),
    ("permutation ignored", MEASURES, IN_FUNCTIONS, without("permutation"), "tasks.pixels"),
    ("one step ahead", SEQUENCES, IN_FUNCTIONS, always(k=1), "tasks.characters"),
    ("rate ignored", SEQUENCES, IN_FUNCTIONS, without("rate"), "tasks.waveform"),
    ("overtones scaled", SEQUENCES, IN_FUNCTIONS, enlarged, "tasks.random_waveform"),
    ("hop ignored", SEQUENCES, IN_FUNCTIONS, always(hop=1), "tasks.spectrogram"),
    ("normaliser ignored", SEQUENCES, IN_FUNCTIONS, without("normaliser"), "metrics.nmse"),
    ("error scaled", SEQUENCES, IN_FUNCTIONS, enlarged, "metrics.masked_mse"),
    ("NaN accepted", SEQUENCES, IN_FUNCTIONS, always(check_finite=False), "metrics.nmse"),
    ("inverse map of -W", MAKERS, IN_METHODS, on_array("w", negated), "from_matrix"),
    ("sign of a trapezoid ignored", MAKERS, IN_METHODS, without("sign"), "from_trapezoid"),
    ("random without its seed", MAKERS, IN_METHODS, reseeded, "random"),
    ("random of another dtype", MAKERS, IN_METHODS, without("dtype"), "random"),
    ("budget of threads ignored", MEASURES, IN_FUNCTIONS, always(k=1), "set_num_threads"),
    # gives wrong gradients
    ("one row counts", OPERATORS, IN_METHODS, with_first_row, "apply_vjp"),
    ("a term is missing", OPERATORS, IN_METHODS, cut, "matrix_vjp"),
    ("a term is missing", LARGE, IN_METHODS, cut, "matrix_vjp"),
    ("gradient scaled", LARGE, IN_METHODS, enlarged, "matrix_vjp"),
    ("gradient unconjugated", OPERATORS, IN_METHODS, conjugated, "matrix_vjp"),
    ("half of modReLU's gradient", ACTIVATIONS, IN_FUNCTIONS, half_of_modrelu, "activate_vjp"),
    ("lengths ignored on the way back", LAYERS, IN_FUNCTIONS, without("lengths"), "recurrence_vjp"),
    ("marks ignored on the way back", LAYERS, IN_FUNCTIONS, without("starts", "start_state"), "recurrence_vjp"),
    ("gradient scaled", LAYERS, IN_FUNCTIONS, enlarged, "recurrence_vjp"),
    ("an argument without gradient", LAYERS, TORCH_FUNCTIONS, detached, "recurrence"),
    # returns another type, or memory of an argument
    ("always complex", OPERATORS, IN_METHODS, complex_, "apply"),
    ("always complex", ACTIVATIONS, IN_FUNCTIONS, complex_, "activate"),
    ("an argument is overwritten", OPERATORS, IN_METHODS, spoils("x"), "apply"),
    ("a cotangent is overwritten", ACTIVATIONS, IN_FUNCTIONS, spoils("ct"), "activate_vjp"),
    ("an argument is returned", ACTIVATIONS, IN_FUNCTIONS, itself, "activate"),
    ("an argument is returned", ACTIVATIONS, TORCH_FUNCTIONS, itself, "activate"),
    ("strides ignored", OPERATORS, IN_METHODS, on_array("x", contiguous), "apply"),
    # accepts invalid arguments
    ("NaN taken for a number", OPERATORS, IN_METHODS, on_array("x", finite), "apply"),
    ("NaN taken for a number", LAYERS, IN_FUNCTIONS, on_array("x", finite), "recurrence"),
    ("NaN accepted", ACTIVATIONS, IN_FUNCTIONS, always(check_finite=False), "activate"),
    ("NaN accepted", MEASURES, IN_FUNCTIONS, always(check_finite=False), "orthogonality_error"),
    ("NaN lost", UNCHECKED, IN_METHODS, on_results(finite), "matrix", "apply"),
    ("complex accepted", ACTIVATIONS, IN_FUNCTIONS, on_array("bias", real_part), "activate"),
    ("pairs of an odd number", ACTIVATIONS, IN_FUNCTIONS, accepts, "activate"),
    ("unknown names", LAYERS, IN_FUNCTIONS, accepts, "recurrence"),
    ("not orthogonal", MAKERS, IN_METHODS, always(tol=float("inf")), "from_matrix"),
    ("any type", OPERATORS, IN_METHODS, takes_any_type, "apply"),
    ("any shape", OPERATORS, IN_METHODS, accepts, "matrix_vjp"),
    ("any shape", OPERATORS, TORCH_METHODS, accepts, "apply"),
    ("exclusive arguments", OPERATORS, IN_METHODS, both_factors, "__init__"),
    ("exclusive arguments", OPERATORS, TORCH_METHODS, both_factors, "__init__"),
    ("reset ignored", CELLS, TORCH_FUNCTIONS, without("reset"), "gru"),
    ("lengths ignored", CELLS, TORCH_FUNCTIONS, without("lengths"), "gru"),
    ("marks ignored", CELLS, TORCH_FUNCTIONS, without("starts", "start_state"), "gru"),
    ("the state before marks without gradient", CELLS, TORCH_FUNCTIONS, on_array("start_state", cut_off), "gru"),
    ("a weight without gradient", CELLS, TORCH_FUNCTIONS, on_array("w", cut_off), "gru"),
    ("both parts of a state scaled", CELLS, TORCH_FUNCTIONS, enlarged, "lstm"),
    ("the last state scaled", CELLS, IN_FUNCTIONS, last_scaled, "goru"),
    ("blocks in the other order", CELLS, IN_FUNCTIONS, on_array("operator", reversed_), "BlockDiagonal"),
    ("members scaled", CELLS, IN_FUNCTIONS, members_scaled, "gru"),
    ("gradient scaled", CELLS, IN_FUNCTIONS, enlarged, "lstm_vjp"),
    ("normalise ignored", "delta", TORCH_FUNCTIONS, without("normalise"), "delta_rule"),
    ("initial state ignored", "delta", IN_FUNCTIONS, without("initial_state"), "delta_rule", "delta_rule_vjp"),
    ("scale ignored", "hadamard", IN_FUNCTIONS, without("scale"), "hadamard_transform"),
    ("orders that do not exist", "hadamard", IN_FUNCTIONS, accepts, "hadamard_transform"),
    ("rows without gradient", "hadamard", TORCH_FUNCTIONS, on_array("x", cut_off), "hadamard_transform"),
    # raises the wrong error
    ("argument not named", OPERATORS, IN_METHODS, nameless, *METHODS),
    ("argument not named", OPERATORS, TORCH_METHODS, nameless, "__init__"),
    ("argument not named", LAYERS, TORCH_FUNCTIONS, nameless, "recurrence"),
    ("argument not named", MEASURES, IN_FUNCTIONS, nameless, "tasks.one_hot"),
    ("another argument named", ACTIVATIONS, IN_FUNCTIONS, misnamed, "activate"),
    ("another exception", OPERATORS, IN_METHODS, swapped, "__init__"),
    ("another exception", MAKERS, IN_METHODS, swapped, "from_matrix", "random"),
    ("another exception", MEASURES, IN_FUNCTIONS, swapped, "tasks.one_hot"),
    ("another exception", LAYERS, IN_FUNCTIONS, swapped, "recurrence"),
    ("another exception", LAYERS, TORCH_FUNCTIONS, swapped, "recurrence"),
)
