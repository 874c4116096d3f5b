"""Packages with one fault each, wrapped around the real one; the fuzz must reject each of them.

`BROKEN` is a table: the fault, the family of calls that must detect it, and the functions it affects.
"""

import numpy as np

from support.broken import always, first_row, nameless, on_array, on_errors, on_results, without

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
swapped = on_errors(lambda error: SWAPPED.get(type(error), RuntimeError)(str(error)))
misnamed = on_errors(lambda error: type(error)("argument_2" + str(error)[1:]))
conjugated, single, complex_ = on_results(np.conj), on_results(in_single), on_results(lambda a: a + 0j)
enlarged, doubled, cut = on_results(scaled), on_results(lambda a: 2 * a), on_results(last_missing)
accepts, takes_any_type = forgiving(ValueError), forgiving(TypeError)

OPERATORS, LAYERS, MAKERS, LARGE = "operators", "recurrences", "constructors", "large"
ACTIVATIONS, MEASURES, UNCHECKED, SEQUENCES, CELLS = "activations", "measures", "unchecked", "sequences", "cells"
NUMPY, TORCH = "numpy", "torch"

# fault, the family that must detect it, the package, the change, functions or methods
BROKEN = (
    # rejects valid arguments
    ("every constructor refuses", OPERATORS, NUMPY, refuses, "__init__"),
    ("every constructor refuses", LAYERS, NUMPY, refuses, "__init__"),
    ("every constructor refuses", LARGE, NUMPY, refuses, "__init__"),
    ("every constructor refuses", OPERATORS, TORCH, refuses, "__init__"),
    ("every constructor refuses", LAYERS, TORCH, refuses, "__init__"),
    ("every inverse map refuses", MAKERS, NUMPY, refuses, "from_matrix"),
    ("every inverse map refuses", MAKERS, TORCH, refuses, "from_matrix"),
    ("activate refuses", ACTIVATIONS, NUMPY, refuses, "activate"),
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
    ("states scaled", LAYERS, NUMPY, enlarged, "recurrence"),
    ("lengths ignored", LAYERS, NUMPY, without("lengths"), "recurrence"),
    ("lengths ignored", LAYERS, TORCH, without("lengths"), "recurrence"),
    ("reverse ignored", LAYERS, NUMPY, without("reverse"), "recurrence"),
    ("h0 ignored", LAYERS, NUMPY, without("h0"), "recurrence"),
    ("bias ignored", LAYERS, TORCH, without("bias"), "recurrence"),
    ("marks ignored", LAYERS, NUMPY, without("starts", "start_state"), "recurrence"),
    ("marks ignored", LAYERS, TORCH, without("starts", "start_state"), "recurrence"),
    ("the state before marks ignored", LAYERS, NUMPY, without("start_state"), "recurrence"),
    ("marks of the other order", LAYERS, NUMPY, on_array("starts", reversed_), "recurrence"),
    ("slope ignored", LAYERS, NUMPY, without("slope"), "recurrence"),
    ("activation_on ignored", LAYERS, NUMPY, without("activation_on"), "recurrence"),
    ("activations scaled", ACTIVATIONS, NUMPY, enlarged, "activate"),
    ("slope ignored", ACTIVATIONS, TORCH, without("slope"), "activate"),
    ("real forms scaled", MEASURES, TORCH, enlarged, "real_matrix"),
    ("real forms conjugated", MEASURES, NUMPY, on_array("w", np.conj), "real_matrix"),
    ("orthogonality_error doubled", MEASURES, NUMPY, doubled, "orthogonality_error"),
    ("numbers to be added scaled", MEASURES, NUMPY, enlarged, "tasks.adding"),
    ("marker at another step", MEASURES, NUMPY, always(marker_offset=1), "tasks.copying"),
    ("group ignored", MEASURES, NUMPY, without("group"), "tasks.permutations"),
    ("permutation ignored", MEASURES, NUMPY, without("permutation"), "tasks.pixels"),
    ("one step ahead", SEQUENCES, NUMPY, always(k=1), "tasks.characters"),
    ("rate ignored", SEQUENCES, NUMPY, without("rate"), "tasks.waveform"),
    ("overtones scaled", SEQUENCES, NUMPY, enlarged, "tasks.random_waveform"),
    ("hop ignored", SEQUENCES, NUMPY, always(hop=1), "tasks.spectrogram"),
    ("normaliser ignored", SEQUENCES, NUMPY, without("normaliser"), "metrics.nmse"),
    ("error scaled", SEQUENCES, NUMPY, enlarged, "metrics.masked_mse"),
    ("NaN accepted", SEQUENCES, NUMPY, always(check_finite=False), "metrics.nmse"),
    ("inverse map of -W", MAKERS, NUMPY, on_array("w", negated), "from_matrix"),
    ("sign of a trapezoid ignored", MAKERS, NUMPY, without("sign"), "from_trapezoid"),
    ("random without its seed", MAKERS, NUMPY, reseeded, "random"),
    ("random of another dtype", MAKERS, NUMPY, without("dtype"), "random"),
    ("budget of threads ignored", MEASURES, NUMPY, always(k=1), "set_num_threads"),
    # gives wrong gradients
    ("one row counts", OPERATORS, NUMPY, first_row, "apply_vjp"),
    ("a term is missing", OPERATORS, NUMPY, cut, "matrix_vjp"),
    ("a term is missing", LARGE, NUMPY, cut, "matrix_vjp"),
    ("gradient scaled", LARGE, NUMPY, enlarged, "matrix_vjp"),
    ("gradient unconjugated", OPERATORS, NUMPY, conjugated, "matrix_vjp"),
    ("half of modReLU's gradient", ACTIVATIONS, NUMPY, half_of_modrelu, "activate_vjp"),
    ("lengths ignored on the way back", LAYERS, NUMPY, without("lengths"), "recurrence_vjp"),
    ("marks ignored on the way back", LAYERS, NUMPY, without("starts", "start_state"), "recurrence_vjp"),
    ("gradient scaled", LAYERS, NUMPY, enlarged, "recurrence_vjp"),
    ("an argument without gradient", LAYERS, TORCH, detached, "recurrence"),
    # returns another type, or memory of an argument
    ("always complex", OPERATORS, NUMPY, complex_, "apply"),
    ("always complex", ACTIVATIONS, NUMPY, complex_, "activate"),
    ("an argument is overwritten", OPERATORS, NUMPY, spoils("x"), "apply"),
    ("a cotangent is overwritten", ACTIVATIONS, NUMPY, spoils("ct"), "activate_vjp"),
    ("an argument is returned", ACTIVATIONS, NUMPY, itself, "activate"),
    ("an argument is returned", ACTIVATIONS, TORCH, itself, "activate"),
    ("strides ignored", OPERATORS, NUMPY, on_array("x", contiguous), "apply"),
    # accepts invalid arguments
    ("NaN taken for a number", OPERATORS, NUMPY, on_array("x", finite), "apply"),
    ("NaN taken for a number", LAYERS, NUMPY, on_array("x", finite), "recurrence"),
    ("NaN accepted", ACTIVATIONS, NUMPY, always(check_finite=False), "activate"),
    ("NaN accepted", MEASURES, NUMPY, always(check_finite=False), "orthogonality_error"),
    ("NaN lost", UNCHECKED, NUMPY, on_results(finite), "matrix", "apply"),
    ("complex accepted", ACTIVATIONS, NUMPY, on_array("bias", real_part), "activate"),
    ("pairs of an odd number", ACTIVATIONS, NUMPY, accepts, "activate"),
    ("unknown names", LAYERS, NUMPY, accepts, "recurrence"),
    ("not orthogonal", MAKERS, NUMPY, always(tol=float("inf")), "from_matrix"),
    ("any type", OPERATORS, NUMPY, takes_any_type, "apply"),
    ("any shape", OPERATORS, NUMPY, accepts, "matrix_vjp"),
    ("any shape", OPERATORS, TORCH, accepts, "apply"),
    ("exclusive arguments", OPERATORS, NUMPY, both_factors, "__init__"),
    ("exclusive arguments", OPERATORS, TORCH, both_factors, "__init__"),
    ("reset ignored", CELLS, TORCH, without("reset"), "gru"),
    ("lengths ignored", CELLS, TORCH, without("lengths"), "gru"),
    ("marks ignored", CELLS, TORCH, without("starts", "start_state"), "gru"),
    ("the state before marks without gradient", CELLS, TORCH, on_array("start_state", cut_off), "gru"),
    ("a weight without gradient", CELLS, TORCH, on_array("w", cut_off), "gru"),
    ("both parts of a state scaled", CELLS, TORCH, enlarged, "lstm"),
    ("the last state scaled", CELLS, NUMPY, last_scaled, "goru"),
    ("blocks in the other order", CELLS, NUMPY, on_array("operator", reversed_), "BlockDiagonal"),
    ("members scaled", CELLS, NUMPY, members_scaled, "gru"),
    ("gradient scaled", CELLS, NUMPY, enlarged, "lstm_vjp"),
    ("normalise ignored", "delta", TORCH, without("normalise"), "delta_rule"),
    ("initial state ignored", "delta", NUMPY, without("initial_state"), "delta_rule", "delta_rule_vjp"),
    ("scale ignored", "hadamard", NUMPY, without("scale"), "hadamard_transform"),
    ("orders that do not exist", "hadamard", NUMPY, accepts, "hadamard_transform"),
    ("rows without gradient", "hadamard", TORCH, on_array("x", cut_off), "hadamard_transform"),
    # raises the wrong error
    ("argument not named", OPERATORS, NUMPY, nameless, *METHODS),
    ("argument not named", OPERATORS, TORCH, nameless, "__init__"),
    ("argument not named", LAYERS, TORCH, nameless, "recurrence"),
    ("argument not named", MEASURES, NUMPY, nameless, "tasks.one_hot"),
    ("another argument named", ACTIVATIONS, NUMPY, misnamed, "activate"),
    ("another exception", OPERATORS, NUMPY, swapped, "__init__"),
    ("another exception", MAKERS, NUMPY, swapped, "from_matrix", "random"),
    ("another exception", MEASURES, NUMPY, swapped, "tasks.one_hot"),
    ("another exception", LAYERS, NUMPY, swapped, "recurrence"),
    ("another exception", LAYERS, TORCH, swapped, "recurrence"),
)
