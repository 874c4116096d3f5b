"""Checks of shape, dtype, name and range, and their messages, shared by both faces.

Checks for activations and the recurrence only are in `check_recurrence`, those of tasks in `check_tasks`.

This module does not handle arrays. Functions take shapes (tuples of int), dtype names ("float32") and plain values;
they return what the caller needs next (a batch shape, a size) or None, and raise ValueError (shape, value) or
TypeError (kind, dtype). Checks of the values in an array have two parts: the face evaluates the condition on its own
arrays and calls the function named after the error (`zero_reflection`, `sign_range`, `not_finite`, ...), which
raises.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from math import isfinite
from numbers import Real
from operator import index
from typing import NoReturn

Shape = tuple[int, ...]

#: dtype name -> its real type, and its complex type; the keys are the supported dtypes.
REAL = {"float32": "float32", "float64": "float64", "complex64": "float32", "complex128": "float64"}
#: The largest count of anything. Larger values are mistakes, or integers too long to print.
MOST = 2**31 - 1
COMPLEX = {"float32": "complex64", "float64": "complex128", "complex64": "complex64", "complex128": "complex128"}


# ---------------------------------------------------------------- kinds, dtypes, counts


def kind(argument: str, expected: str, value: object) -> NoReturn:
    """The argument is not of the expected kind ("a torch.Tensor", "an operator")."""
    name, traced = type(value).__name__, type(value).__module__.startswith("torch.fx")
    how = ". torch.fx traces modules of isometry.torch, and functions named to torch.fx.wrap" if traced else ""
    raise TypeError(f"{argument} must be {expected}, not {name}{how}")


def article(name: str) -> str:
    """The name behind "a" or "an", as it is spoken: an ORNN, an RNN, an LSTM, a URNN, a GRU, a UnitaryORNN."""
    spelled = name[:2].isupper() and not set(name[:2]) & set("AEIOU")  # letter by letter
    vowel = name[:1] in "FHLMNRSX" if spelled else name[:1].lower() in "aeio" or re.match("[Uu](?!ni|[A-Z])", name)
    return f"{'an' if vowel else 'a'} {name}"


def nearest(name: str, known: Iterable[str]) -> str:
    """What a message about an unknown name ends with: the nearest known one, if one is near."""
    near = get_close_matches(name, known, 1)
    return f". Did you mean {near[0]!r}?" if near else ""


def unknown_keyword(call: str, name: str, known: Iterable[str]) -> NoReturn:
    """A keyword that a call does not have, in Python's words, with the nearest one."""
    raise TypeError(f"{call}() got an unexpected keyword argument {name!r}{nearest(name, known)}")


def floating(argument: str, dtype: str) -> None:
    """The argument has one of the four supported dtypes."""
    if dtype not in REAL:
        raise TypeError(f"{argument} must be float32, float64, complex64 or complex128, not {dtype}")


def real(argument: str, dtype: str) -> None:
    """The argument is float32 or float64."""
    floating(argument, dtype)
    if REAL[dtype] != dtype:
        raise TypeError(f"{argument} must be real (float32 or float64), not {dtype}")


def stored(argument: str, dtype: str, or_complex: bool = False) -> NoReturn:
    """Torch face: a weight of a dtype that is neither computed in nor widened."""
    known = "float16, bfloat16, float32" + (", float64, complex64 or complex128" if or_complex else " or float64")
    raise TypeError(f"{argument} must be {known}, not {dtype}")


def dense(argument: str, name: str) -> NoReturn:
    """A sparse array where a dense one is needed."""
    raise TypeError(
        f"{argument} must be a dense array, not a sparse {name}: use {argument}.toarray(), or the matrix of the "
        "operator, op.matrix()"
    )


def complex_only(argument: str, dtype: str) -> None:
    """The argument is complex64 or complex128."""
    if REAL.get(dtype) in (None, dtype):
        raise TypeError(f"{argument} must be complex (complex64 or complex128), not {dtype}")


def unreadable(argument: str, error: Exception) -> NoReturn:
    """NumPy, or torch, cannot make an array of the argument, for the reason given: rows of several lengths, an object,
    ..."""
    refused = ValueError if isinstance(error, ValueError) else TypeError
    raise refused(f"{argument} must be an array, or something to make one of: {error}") from error


def strided(argument: str, layout: object) -> NoReturn:
    """Torch face: a sparse or otherwise packed tensor."""
    raise TypeError(f"{argument} must be a dense (strided) tensor, not one of layout {layout}; call .to_dense()")


def number(argument: str, value: object) -> float:
    """The value of a Python or NumPy real number."""
    if not isinstance(value, (int, float, Real)):
        kind(argument, "a number", value)
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{argument} must lie in the range of float64") from None


def factor(argument: str, value: object, finite: bool) -> float:
    """A number, which with `finite` is not infinite and not NaN."""
    found = number(argument, value)
    if finite and not isfinite(found):
        not_finite(argument)
    return found


def finite_number(argument: str, value: object) -> float:
    """A number that is not infinite and not NaN."""
    found = number(argument, value)
    if not float("-inf") < found < float("inf"):
        raise ValueError(f"{argument} must be a finite number, not {value}")
    return found


def flag(argument: str, value: object) -> bool:
    """A bool, Python's or NumPy's. Other values have a truth value too, but that of "no" is true."""
    # NumPy's type by its name (bool_ before NumPy 2), since this module does not import NumPy.
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        kind(argument, "a bool", value)
    return bool(value)


def choice(argument: str, value: object, *known: str) -> None:
    """One of a few names."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{argument} must be {' or '.join(map(repr, known))}, not {value!r}")


def tolerance(tol: object, argument: str = "tol") -> float:
    """A number, tol >= 0; infinity accepts everything."""
    value = number(argument, tol)
    if not value >= 0:
        raise ValueError(f"{argument} must be at least 0, not {value}")
    return value


def integer(argument: str, dtype: str) -> None:
    """The argument is of a signed or unsigned integer type."""
    if not dtype.startswith(("int", "uint")):
        raise TypeError(f"{argument} must be integers of at most 64 bits, not {dtype}")


def same_precision(argument: str, dtype: str, other: str, other_dtype: str) -> None:
    """Torch face: two arguments have the same precision (real may be combined with complex)."""
    if REAL[dtype] != REAL[other_dtype]:
        raise TypeError(f"{argument} is {dtype} and {other} is {other_dtype}: they must have the same precision")


def field_of_result(argument: str, dtype: str, result: str) -> None:
    """NumPy face: the cotangent of a real result (and the states) must be real."""
    if REAL[result] == result and REAL[dtype] != dtype:
        raise TypeError(f"{argument} must be real because the result is ({result}), not {dtype}")


def backend(name: str) -> None:
    """The backend exists: "cpu" or "gpu"."""
    choice("backend", name, "cpu", "gpu")


def whole(argument: str, value: object) -> int:
    """An integer of any type, as Python's own; a bool is not one, nor is torch's, which has `__index__`."""
    if type(value) is int:
        return value
    if not isinstance(value, bool) and str(getattr(value, "dtype", None)) != "torch.bool":
        try:
            return index(value)  # type: ignore[arg-type]
        except TypeError:  # arrays have `__index__`, but refuse unless they hold a single integer
            pass
    raise TypeError(f"{argument} must be an integer, not {type(value).__name__}")


def count(argument: str, value: int, least: int) -> int:
    """A number of things, as Python's own integer."""
    number = whole(argument, value)
    if number < least:
        told = f", not {number}" if number >= -MOST else ""
        raise ValueError(f"{argument} must be at least {least}{told}")
    if number > MOST:
        too_many(argument)
    return number


def too_many(argument: str) -> NoReturn:
    """A count that no memory could hold."""
    raise ValueError(f"{argument} must be at most {MOST}")


def within(argument: str, value: int, low: int, high: int) -> int:
    """An integer of low..high, as Python's own."""
    number = whole(argument, value)
    if not low <= number <= high:
        told = f", not {number}" if abs(number) <= MOST else ""
        raise ValueError(f"{argument} must lie in {low}..{high}{told}")
    return number


# ---------------------------------------------------------------- shapes


def broadcast(**shapes: Shape) -> Shape:
    """The common shape of batch shapes under NumPy's rule; the message names the arguments that do not fit."""
    result: Shape = ()
    for shape in shapes.values():
        # Lengths first: comparing tuples compares their first sizes, which torch.export records as a condition.
        if len(shape) != len(result) or shape != result:
            short, long = (shape, result) if len(shape) < len(result) else (result, shape)
            extra = len(long) - len(short)
            tail = []
            for a, b in zip(short, long[extra:], strict=True):
                if a != b and a != 1 and b != 1:
                    listed = ", ".join(f"{k} {tuple(s)}" for k, s in shapes.items())
                    raise ValueError(
                        f"the batch shapes of {', '.join(shapes)} must broadcast against each other, not {listed}"
                    )
                tail.append(b if a == 1 else a)
            result = (*long[:extra], *tail)
    return result


def stack(argument: str, shape: Shape, rank: int, form: str) -> Shape:
    """The leading axes of an argument whose last `rank` axes have a form such as "(*, n, m)"."""
    if len(shape) < rank:
        raise ValueError(f"{argument} must have shape {form}, not {shape}")
    return shape[: len(shape) - rank]


def last(argument: str, shape: Shape, n: int, form: str = "(*, n)") -> Shape:
    """The leading axes of an argument whose last axis has length n."""
    if not shape or shape[-1] != n:
        raise ValueError(f"{argument} must have shape {form} with n = {n}, not {shape}")
    return shape[:-1]


def exact(argument: str, shape: Shape, expected: Shape, form: str = "") -> None:
    """The argument has exactly this shape."""
    if shape != expected:
        raise ValueError(f"{argument} must have shape {f'{form} = ' if form else ''}{expected}, not {shape}")


def square(argument: str, shape: Shape) -> Shape:
    """The batch shape of a stack of square matrices, n >= 1."""
    batch = stack(argument, shape, 2, "(*, n, n)")
    if shape[-1] != shape[-2] or shape[-1] == 0:
        raise ValueError(f"{argument} must be square, of shape (*, n, n) with n >= 1, not {shape}")
    return batch


def columns(argument: str, shape: Shape) -> None:
    """A stack of matrices with at least one column."""
    if len(shape) < 2 or shape[-1] == 0:
        raise ValueError(f"{argument} must have shape (*, p, n) with n >= 1, not {shape}")


def rows(argument: str, shape: Shape, features: int, batch_shape: Shape) -> Shape:
    """The leading axes of the result of an operator on rows of the given shape."""
    if not shape or shape[-1] != features:
        raise ValueError(
            f"{argument} must have shape (..., {features}), a vector of that length in the last axis, not {shape}"
        )
    if batch_shape == ():
        return shape[:-1]
    return against(argument, shape[:-1], batch_shape, f"op{{}}({argument})")


def against(argument: str, lead: Shape, batch_shape: Shape, call: str) -> Shape:
    """The leading axes of the result of a stack of operators on an argument with these axes before its vectors; where
    they do not fit, the message names the stack with as few more axes as do."""
    try:
        return broadcast(x=lead, operator=batch_shape)
    except ValueError:
        pass
    fits = lambda batch: all(a == b or 1 in (a, b) for a, b in zip(batch[::-1], lead[::-1], strict=False))
    more = next(k for k in range(1, len(lead) + 1) if fits((*batch_shape, *(1,) * k)))
    key = f"[{':' if len(batch_shape) == 1 else '...'}{', None' * more}]"
    found = broadcast(x=lead, operator=(*batch_shape, *(1,) * more))
    raise ValueError(
        f"the leading axes {lead} of {argument} must broadcast against the operator's batch_shape {batch_shape}; "
        f"{call.format(key)} has the leading axes {found}"
    )


def real_form(shape: Shape, rank: int) -> None:
    """The argument is the real form of a complex state (rank 1) or matrix (rank 2): its last axes are even."""
    form = "(..., 2n)" if rank == 1 else "(*, 2p, 2q)"
    stack("r", shape, rank, form)
    if any(size % 2 for size in shape[len(shape) - rank :]):
        raise ValueError(f"r must have shape {form} with even sizes, not {shape}")


# ---------------------------------------------------------------- values: called when an error has been found


def not_finite(argument: str) -> NoReturn:
    """NumPy face: NaN or infinity under check_finite."""
    raise ValueError(f"{argument} must be finite, but contains NaN or infinity (check_finite=False lets them through)")
