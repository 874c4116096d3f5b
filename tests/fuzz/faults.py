"""The possible faults of one argument, as data: the change of a valid call and the documented error.

`ARRAYS` holds the faults of any array of numbers; wrong values of all other arguments are those of
`tests/test_odd_arguments.py` and `tests/laws/cells/test_refusals.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import reference as ref
from fuzz.call import Raw
from registry import is_complex

BOTH = ("numpy", "torch")
NUMPY, TORCH = ("numpy",), ("torch",)
SERVED = "float32, float64, complex64 or complex128, not"


@dataclass(frozen=True)
class Fault:
    """One fault in one argument; `{}` in `says` is the argument to be named."""

    name: str
    change: Callable  # (call, argument, choices) -> a wrong value, or None if the fault does not apply
    raises: type = ValueError
    says: str = "^{} must "
    faces: tuple = BOTH
    blames: Callable = lambda call, argument, changed: argument


# ---------------------------------------------------------------- shapes

SHAPE = r"^(the (batch shapes|leading axes) .*\b)?(the )?({})\b.* must "


def other_length(call, name, choices):
    """One axis of another length."""
    a = call.arguments[name]
    for _ in range(4 if np.ndim(a) else 0):
        axis = choices.below(a.ndim)
        length = choices.of((0, a.shape[axis] + 1, max(a.shape[axis] - 1, 0), 2 * a.shape[axis] + 1, 1))
        shape = (*a.shape[:axis], length, *a.shape[axis + 1 :])
        if length != a.shape[axis] and not call.sites[name].fits(shape):
            return numbers(choices, shape, a.dtype)
    return None


def blamed_for_length(call, name, changed):
    """If only one axis matters for another argument, that one is named."""
    before, after = call.arguments[name].shape, changed.shape
    axis = next(k for k in range(-1, -len(before) - 1, -1) if before[k] != after[k])
    return call.sites[name].blames.get(axis, name)


def fewer_axes(call, name, choices):
    a = call.arguments[name]
    rank = call.sites[name].rank
    if not rank or not np.ndim(a):
        return None
    shape = a.shape[a.ndim - choices.below(rank) :] if choices.once_in(2) else a.shape[1:]
    return None if len(shape) == a.ndim or call.sites[name].fits(shape) else numbers(choices, shape, a.dtype)


def more_axes(call, name, choices):
    a = call.arguments[name]
    shape = (choices.of((1, 2, 3)), *np.shape(a))
    served = not isinstance(a, np.ndarray) or call.sites[name].fits(shape)
    return None if served else numbers(choices, shape, a.dtype)


def numbers(choices, shape, dtype):
    dtype = dtype if dtype.kind in "fc" else np.float64
    return ref.normal(choices.rng, *shape, dtype=dtype)


# ---------------------------------------------------------------- types


def as_type(*kinds):
    """The same numbers in an unsupported type."""

    def change(call, name, choices):
        kind = choices.of(kinds)
        a = np.asarray(call.arguments[name]).real
        return np.minimum(np.abs(a), 9).astype(kind)

    return change


def one_of(*values):
    return lambda call, name, choices: Raw(choices.of(values))


def nothing(call, name, choices):
    return Raw(None) if call.sites[name].required else None


def made_complex(call, name, choices):
    a = np.asarray(call.arguments[name])
    return a.astype(np.result_type(a.dtype, np.complex64)) if call.sites[name].real and a.dtype.kind == "f" else None


def complex_beside_real(call, name, choices):
    """A complex cotangent, or complex states, for a real result."""
    return call.arguments[name].astype(complex) if call.sites[name].real_as_result and not call.complex else None


def other_precision(call, name, choices):
    a = call.arguments[name]
    if not call.sites[name].precision or not isinstance(a, np.ndarray):
        return None
    return a.astype({"f4": "f8", "f8": "f4", "c8": "c16", "c16": "c8"}[a.dtype.str[1:]])


def sparse(call, name, choices):
    import torch

    a = call.arguments[name]
    return Raw(torch.from_numpy(np.array(a)).to_sparse()) if np.ndim(a) else None


def half(call, name, choices):
    import torch

    a = np.array(np.asarray(call.arguments[name]).real, float)
    return Raw(torch.from_numpy(a).to(choices.of((torch.bfloat16, torch.float16))))


# ---------------------------------------------------------------- values


def not_finite(call, name, choices):
    """NaN or infinity in one entry, under check_finite."""
    a = call.arguments[name]
    if not np.size(a) or not call.checks or call.arguments.get("check_finite") is False:
        return None
    a = np.array(a, dtype=a.dtype if isinstance(a, np.ndarray) else float)
    wrong = (np.nan, np.inf, -np.inf) + ((complex(0, np.nan), complex(1, -np.inf)) if is_complex(a.dtype) else ())
    a.reshape(-1)[choices.rng.integers(a.size)] = choices.of(wrong)
    return a


def refused(call, name, choices):
    """A value that the registry declares invalid."""
    site, a = call.sites[name], call.arguments[name]
    if not site.refused or not np.size(a):
        return None
    changed = choices.of(list(site.refused.values()))(np.asarray(a))
    return float(changed) if isinstance(a, float) else changed


ARRAYS = (
    Fault("an axis of another length", other_length, says=SHAPE, blames=blamed_for_length),
    Fault("fewer axes", fewer_axes, says=SHAPE),
    Fault("more axes", more_axes, says=SHAPE),
    Fault("half or extended precision", as_type("f2", "g", "G"), TypeError, "^{} must be (float32|real).*, not", NUMPY),
    Fault("half precision", half, TypeError, f"^{{}} must be {SERVED}", TORCH),
    Fault("integers", as_type("i8", "i4", "u1", "?"), TypeError, f"^{{}} must be {SERVED}", TORCH),
    Fault("dates and texts", one_of(np.array(["a"]), np.zeros(2, "M8[s]"), "abc"), TypeError, faces=NUMPY),
    Fault("no numbers", one_of(object(), {1.0}, [None, 1.0], b"1"), TypeError, faces=NUMPY),
    Fault("nothing", nothing, TypeError),
    Fault("lists of unequal lengths", lambda *_: Raw([[1.0], [1.0, 2.0]]), ValueError, faces=NUMPY),
    Fault("no tensor", one_of(np.ones(2), [1.0], object(), "abc", 1j), TypeError, "^{} must be a torch.Tensor", TORCH),
    Fault("sparse", sparse, TypeError, "^{} must be a dense", TORCH),
    Fault("complex where real is required", made_complex, TypeError, r"^{} must be real \(float32 or float64\), not"),
    Fault("complex beside a real result", complex_beside_real, TypeError, "^{} must be real because", NUMPY),
    Fault("another precision", other_precision, TypeError, "^{} is .* must have the same precision", TORCH),
    Fault("not finite", not_finite, says=r"^{} must (be finite|be \+1 or -1|lie in)", faces=NUMPY),
    Fault("refused values", refused),
)


def unwelcome(call, name, choices):
    return call.unwelcome[name]


UNWELCOME = Fault("an argument too many", unwelcome, says=r"\b{}\b.* must not be given")


# ---------------------------------------------------------------- choosing one


def possible(call, face):
    """Every (argument, fault) of a call."""
    arrays = [name for name in call.sites if name not in face.foreign]
    found = [(name, fault) for name in arrays for fault in ARRAYS if face.name in fault.faces]
    return found + [(name, UNWELCOME) for name in call.unwelcome]


class Spoiled(NamedTuple):
    """The arguments of a call with one fault, and the required error."""

    arguments: dict
    title: str
    raises: type
    says: str
    fault: Fault


def inject(call, face, choices):
    """The call with one fault; None if none was found in a few tries."""
    faults = possible(call, face)
    for _ in range(8 if faults else 0):
        name, fault = choices.of(faults)
        changed = fault.change(call, name, choices)
        if changed is None:
            continue
        changed = np.asarray(changed) if isinstance(changed, np.generic) else changed
        blamed = fault.blames(call, name, changed)
        says = fault.says.replace("{}", f"(?:{blamed.partition('.')[0]})")
        return Spoiled({**call.arguments, name: changed}, f"{name}: {fault.name}", fault.raises, says, fault)
    return None
