"""The possible faults of one argument, as data: the change of a valid call and the documented error.

`ARRAYS` holds the faults of any array of numbers, `VALUES` the wrong values of all other arguments.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import reference as ref
from fuzz.call import Kind, Raw, told
from registry import OBJECTS, is_complex

HUGE = 10**400  # beyond float64
MANY = 10**30  # beyond 64 bits
BOTH = ("numpy", "torch")
NUMPY, TORCH = ("numpy",), ("torch",)
SERVED = "float32, float64, complex64 or complex128, not"


@dataclass(frozen=True)
class Fault:
    """One fault in one argument; `{}` in `says` is the argument to be named."""

    name: str
    change: Callable  # (call, argument, choices) -> a wrong value, or None if the fault does not apply
    raises: type | tuple = ValueError
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


def transition(call, name):
    """The transition of a recurrence, if this is its first argument."""
    entry = next((e for e in OBJECTS.values() if e.cls == call.cls), None)
    first = call.on == "package" and entry is not None and name == next(iter(entry.arguments))
    return entry if first else None


def stacked(call, name, choices):
    """Two operators instead of one."""
    return np.stack([call.arguments[name]] * 2) if transition(call, name) else None


def not_square(call, name, choices):
    entry, a = transition(call, name), call.arguments[name]
    return np.concatenate([a, a[:1]]) if entry and entry.rectangular else None


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


def ragged(call, name, choices):
    return Raw([[1.0], [1.0, 2.0]])


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

    if call.sites[name].half:
        return None
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
    """A value that the registry or the call declares invalid."""
    site, a = call.sites[name], call.arguments[name]
    if not site.refused or not np.size(a):
        return None
    changed = choices.of(list(site.refused.values()))(np.asarray(a))
    return float(changed) if isinstance(a, float) else changed


ARRAYS = (
    Fault("an axis of another length", other_length, says=SHAPE, blames=blamed_for_length),
    Fault("fewer axes", fewer_axes, says=SHAPE),
    Fault("more axes", more_axes, says=SHAPE),
    Fault("a stack as transition", stacked, says="^transition must be one operator"),
    Fault("a transition that is not square", not_square, says="^transition must be square"),
    Fault("half or extended precision", as_type("f2", "g", "G"), TypeError, "^{} must be (float32|real).*, not", NUMPY),
    Fault("half precision", half, TypeError, f"^{{}} must be {SERVED}", TORCH),
    Fault("integers", as_type("i8", "i4", "u1", "?"), TypeError, f"^{{}} must be {SERVED}", TORCH),
    Fault("dates and texts", one_of(np.array(["a"]), np.zeros(2, "M8[s]"), "abc"), TypeError, faces=NUMPY),
    Fault("no numbers", one_of(object(), {1.0}, [None, 1.0], b"1"), TypeError, faces=NUMPY),
    Fault("nothing", nothing, TypeError),
    Fault("lists of unequal lengths", ragged, ValueError, faces=NUMPY),
    Fault("no tensor", one_of(np.ones(2), [1.0], object(), "abc", 1j), TypeError, "^{} must be a torch.Tensor", TORCH),
    Fault("sparse", sparse, TypeError, "^{} must be a dense", TORCH),
    Fault("complex where real is required", made_complex, TypeError, r"^{} must be real \(float32 or float64\), not"),
    Fault("complex beside a real result", complex_beside_real, TypeError, "^{} must be real because", NUMPY),
    Fault("another precision", other_precision, TypeError, "^{} is .* must have the same precision", TORCH),
    Fault("not finite", not_finite, says=r"^{} must (be finite|be \+1 or -1|lie in)", faces=NUMPY),
    Fault("refused values", refused, says="^{} must ", blames=lambda call, name, _: call.sites[name].says or name),
)


# ---------------------------------------------------------------- arguments that are not arrays of numbers


@dataclass(frozen=True)
class Wrong:
    """One wrong value, or a function of the call that gives one or None."""

    value: object
    raises: type | tuple = ValueError
    says: str = "^{} must "


def of(call, wrong):
    return wrong.value(call) if callable(wrong.value) else wrong.value


NUMBER = tuple(Wrong(value, TypeError) for value in ("0.1", None, [0.1], 1j))
INTEGER = tuple(Wrong(value, TypeError) for value in (2.5, "3", True, [1]))
COUNT = (*(Wrong(value) for value in (0, -1, MANY)), *INTEGER, Wrong(None, TypeError))
POSITIVE = (*NUMBER, *(Wrong(value) for value in (0.0, -1.0, float("nan"), float("inf"), HUGE)))
NAME = (*(Wrong(v, TypeError) for v in (3, None, ["tanh"])), *(Wrong(v) for v in ("softplus", "", "Tanh")))
EVEN = "^(the )?(z|transition|state) must have an even number"


def without_bias(name, fits):
    """An activation that is wrong for this call, without a bias that would be wrong too."""

    def value(call):
        own = "bias" if "name" in call.options else "activation_bias"
        return name if own not in call.arguments and fits(call) else None

    return value


def lengths(change):
    """Lengths with one wrong entry."""

    def value(call):
        return np.array(change(np.full(call.sizes["B"], call.sizes["T"]), call.sizes["T"]))

    return value


def marks(change):
    """Marks, none of them set, in a wrong form."""

    def value(call):
        return change(np.zeros((call.sizes["T"], call.sizes["B"]), bool))

    return value


ACTIVATION = (
    *NAME,
    *(
        Wrong(without_bias(name, lambda call: call.sizes["n"] % 2), says=EVEN)
        for name in ("oplu", "oplu_halves", "modrelu_realrep")
    ),
    Wrong(
        without_bias("modrelu_realrep", lambda call: call.sizes["n"] % 2 == 0 and call.complex),
        says="^(the )?(z|transition) must be real",
    ),
    Wrong(without_bias("modrelu", lambda call: True), says="^(activation_)?bias must be given"),
)
VALUES = {
    "activation": ACTIVATION,
    "name": ACTIVATION,
    "slope": (*NUMBER, *(Wrong(value) for value in (1.0, -0.1, float("nan"), float("inf"), HUGE))),
    "reset": (*(Wrong(value) for value in ("later", "", "After")), *(Wrong(v) for v in (None, 1, ["after"]))),
    "activation_on": tuple(Wrong(value) for value in ("output", "", None, 0)),
    "checkpoint": tuple(Wrong(value) for value in ("all", "", None, 1)),
    "output": tuple(Wrong(value) for value in ("final", "", None, 1)),
    "reverse": tuple(Wrong(value, TypeError) for value in ("no", None, 2.5, [], np.ones(2))),
    "backend": tuple(Wrong(value) for value in ("abacus", "CPU", "cuda")),
    "lengths": (
        *(Wrong(value, TypeError) for value in ("abc", 2.5, [1.5], object(), [None, 1])),
        *(Wrong(value, (TypeError, ValueError)) for value in ([MANY, 1], [[1], [1, 2]], ["1"])),
        Wrong(lengths(lambda good, t: good + (np.arange(len(good)) == 0))),
        Wrong(lengths(lambda good, t: -good)),
        Wrong(lengths(lambda good, t: [*good, t])),
        Wrong(lengths(lambda good, t: good[1:])),
        Wrong(lengths(lambda good, t: t)),
        Wrong(lengths(lambda good, t: good[None])),
        Wrong(lengths(lambda good, t: good.astype(float)), TypeError),
        Wrong(lengths(lambda good, t: good > 0), TypeError),
    ),
    "starts": (
        *(Wrong(value, TypeError) for value in ("abc", 2.5, object(), [[None]])),
        Wrong([[True], [True, False]], (TypeError, ValueError)),
        Wrong(marks(lambda good: good.astype(float)), TypeError),
        Wrong(marks(lambda good: good.astype(np.int64)), TypeError),
        Wrong(marks(lambda good: good[1:])),
        Wrong(marks(lambda good: np.concatenate([good, good], 1))),
        Wrong(marks(lambda good: good[0])),
        Wrong(marks(lambda good: good[..., None])),
        Wrong(True),
    ),
    "transition": (*(Wrong(Raw(value), TypeError) for value in (None, np.eye(2), "W", object(), int)),),
    "tol": (*(Wrong(v) for v in (-1e-9, float("nan"), HUGE)), *(Wrong(v, TypeError) for v in ("small", [1.0]))),
    "n": (*(Wrong(value) for value in (0, -1, -MANY, MANY)), *INTEGER, Wrong(None, TypeError)),
    "m": (*(Wrong(value) for value in (-1, MANY)), Wrong(lambda call: call.sizes["n"] + 1), *INTEGER),
    "negative_ones": (*(Wrong(value) for value in (-1, MANY)), Wrong(lambda call: call.sizes["n"] + 1), *INTEGER),
    "dtype": (
        *(Wrong(Kind(name), TypeError) for name in ("float16", "int32", "bool", "int64")),
        *(Wrong(Raw(value), TypeError) for value in ("abc", 5, object())),
    ),
    "sign": tuple(Wrong(value) for value in ("firm", None, ["hard"], 1)),
    "steps": (*(Wrong(value) for value in (0, -1, MANY)), *INTEGER, Wrong(None, TypeError)),
    "batch": (*(Wrong(value) for value in (0, -3, MANY)), *INTEGER, Wrong(None, TypeError)),
    "variant": tuple(Wrong(value) for value in ("thirds", "", None, ["halves"])),
    "group": tuple(Wrong(value) for value in ("A5", "S6", "", None, ["S3"])),
    "marker_offset": (*(Wrong(v) for v in (2, -1)), *(Wrong(v, (TypeError, ValueError)) for v in (None, "1"))),
    "classes": (*(Wrong(value) for value in (0, -1, MANY)), *INTEGER),
    "ids": (
        *(Wrong(value, TypeError) for value in (1.0, [0.0], "0", [None], object())),
        Wrong(-1),
        Wrong(lambda call: [0, call.sizes["classes"]]),
        Wrong([[0], [0, 0]], (TypeError, ValueError)),
    ),
    "permutation": (
        *(Wrong(value, TypeError) for value in ("abc", object(), [None])),
        Wrong(lambda call: np.arange(call.sizes["pixels"] + 1)),
        Wrong(lambda call: np.arange(call.sizes["pixels"]) + 1 if call.sizes["pixels"] else None),
        Wrong(lambda call: np.arange(call.sizes["pixels"])[None]),
        Wrong(lambda call: np.arange(call.sizes["pixels"]).astype(float), TypeError),
    ),
    "window": (*(Wrong(value) for value in (0, -2, 7, MANY)), *INTEGER, Wrong(None, TypeError)),
    **dict.fromkeys(("hop", "length", "partials"), COUNT),
    **dict.fromkeys(("scale", "floor", "rate"), POSITIVE),
    "normaliser": tuple(Wrong(value) for value in ("range", "", None, ["power"])),
    **dict.fromkeys(("rng", "generator"), tuple(Wrong(Raw(value), TypeError) for value in ("a", 1.5, object()))),
    "check_finite": tuple(Wrong(value, TypeError) for value in ("no", None, [], 0.0)),
    "k": (*(Wrong(value, says=r"1\.\.1024") for value in (0, 1025, 2**70, -1)), *INTEGER, Wrong(None, TypeError)),
}


def unwelcome(call, name, choices):
    return call.unwelcome[name]


UNWELCOME = Fault("an argument too many", unwelcome, says=r"\b{}\b.* must not be given")


# ---------------------------------------------------------------- choosing one


def possible(call, face):
    """Every (argument, fault) of a call."""
    arrays = [name for name in call.sites if name not in face.foreign]
    found = [(name, fault) for name in arrays for fault in ARRAYS if face.name in fault.faces]
    options = (*call.options, "check_finite") if call.checks and face.checks else call.options
    found += [(name, wrong) for name in options for wrong in VALUES[name]]
    return found + [(name, UNWELCOME) for name in call.unwelcome]


class Spoiled(NamedTuple):
    """The arguments of a call with one fault, and the required error."""

    arguments: dict
    title: str
    raises: tuple
    says: str
    fault: Fault | Wrong


def inject(call, face, choices):
    """The call with one fault; None if none was found in a few tries."""
    faults = possible(call, face)
    for _ in range(8 if faults else 0):
        name, fault = choices.of(faults)
        if isinstance(fault, Wrong):
            changed, blamed = of(call, fault), name
            if changed is None and callable(fault.value):
                continue
            title = f"{name}: {told(changed)}"
        else:
            changed, title = fault.change(call, name, choices), f"{name}: {fault.name}"
            if changed is None:
                continue
            changed = np.asarray(changed) if isinstance(changed, np.generic) else changed
            blamed = fault.blames(call, name, changed)
        raises = fault.raises if isinstance(fault.raises, tuple) else (fault.raises,)
        says = fault.says.replace("{}", f"(?:{blamed.partition('.')[0]})")
        return Spoiled({**call.arguments, name: changed}, title, raises, says, fault)
    return None
