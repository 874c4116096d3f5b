"""Operators from a matrix, from another parametrisation, or random ones: their matrix is as documented."""

import inspect

import numpy as np

import reference as ref
import tolerance as tol
from fuzz import draw
from fuzz.call import Call, Close, Kind, Numbers, Orthogonal, Seed
from fuzz.operators import operator
from registry import OBJECTS, is_complex, members, real_of


def constructors(choices, face):
    makers = [(make, k) for make in (inverse, drawn_at_random) for k in makers_of(face, make)] + [
        (make, None) for make in (skew, trapezoid)
    ]
    make, stem = choices.of(makers)
    return draw.finished(choices, face, make(choices, face, *([stem] if stem else [])))


def makers_of(face, make):
    """The classes with this constructor."""
    if make is inverse:
        return [k for k, entry in OBJECTS.items() if entry.inverse]
    served = {k: entry for k, entry in OBJECTS.items() if hasattr(getattr(face.package, entry.cls), "random")}
    return [k for k, entry in served.items() if entry.random]


def stack(function, batch, n):
    """One matrix for each index of a stack."""
    out = np.zeros((*batch, n, n), complex)
    for index in members(batch):
        out[index] = function(index)
    return out


def squares(shape):
    """Whether it is the shape of a stack of square matrices."""
    return len(shape) > 1 and shape[-1] == shape[-2] > 0


# ---------------------------------------------------------------- from a matrix


def inverse(choices, face, stem):
    """from_matrix of a Haar-distributed matrix, or of one with the last factor given."""
    entry, types = OBJECTS[stem], draw.Types(choices, face)
    n = draw.SMALL.size(choices)
    method = getattr(face.package, entry.cls).from_matrix
    factors = [k for k in inspect.signature(method).parameters if k in entry.arguments]
    arguments, sites, unwelcome = {}, {}, {}
    if factors and choices.once_in(2):
        # With any last factor the others exist for matrices built from it.
        drawn, given, known = operator(choices, face, types, n, 1, stem=stem, hard=True, calm=True)
        w = drawn.w.astype(drawn.dtype)
        arguments = {k: a for k, a in given.items() if k in factors}
        sites = {k: known[k] for k in arguments}
        dtype, condition = np.result_type(drawn.dtype, *(a.dtype for a in arguments.values())), drawn.condition
        unwelcome = {
            k: np.asarray(entry.arguments[k].fill(choices.rng, (n,), real_of(w.dtype)))
            for k in factors
            if arguments and k not in arguments
        }
        fits = lambda shape: len(shape) > 1 and shape[-2:] == (n, n)
    else:
        dtype, condition, lead = types.base, 1.0, draw.SMALL.leading(choices)
        w = stack(lambda index: ref.haar(choices.rng, n, dtype), lead, n)
        w = entry.inverse((w if is_complex(dtype) else w.real).astype(dtype))
        fits = squares
    sites["w"] = Numbers(2, fits, precision=False, refused={"not orthogonal": lambda a: 1.5 * a})
    keywords = {"tol": choices.of((1.0, float("inf"), 1))} if choices.once_in(4) else {}
    tolerance = tol.forward(draw.coarsest(w.dtype, dtype), max(n, 4), condition)
    return Call(
        "from_matrix",
        {"w": w, **arguments, **keywords},
        sites if not keywords else {k: s for k, s in sites.items() if k != "w"},
        expected=lambda: {"matrix": Close(w, dtype, tolerance)},
        on="class",
        cls=entry.cls,
        options=("tol",),
        unwelcome=unwelcome,
    )


def skew(choices, face):
    """Cayley.from_skew of a full matrix."""
    types, n, lead = draw.Types(choices, face), draw.SMALL.size(choices), draw.SMALL.leading(choices)
    half = types.numbers(*lead, n, n) / 2
    a = half - np.swapaxes(half, -1, -2).conj()
    w = stack(lambda index: np.linalg.solve(np.eye(n) + ref.wide(a[index]), np.eye(n) - ref.wide(a[index])), lead, n)
    w = w if is_complex(a.dtype) else w.real
    return Call(
        "from_skew",
        {"a": a},
        {"a": Numbers(2, squares, precision=False, refused={"not skew": lambda a: a + np.eye(n, dtype=a.dtype)})},
        expected=lambda: {"matrix": Close(w, a.dtype, tol.forward(a.dtype, n, 1 + np.abs(a).max(initial=0)))},
        on="class",
        cls="Cayley",
    )


def trapezoid(choices, face):
    """Householder.from_trapezoid with and without the number that gives the sign."""
    types, n, lead = draw.Types(choices, face), draw.SMALL.size(choices), draw.SMALL.leading(choices)
    m = choices.between(1, n)
    u = registry_columns(choices, types, lead, n, m)
    policy = choices.of(("hard", "soft"))
    end = u[..., -1, -1] if m == n else None

    def matrix(index):
        last = end if end is None else end[index] if policy == "soft" else np.where(end[index] > 0, 1.0, -1.0)
        return ref.householder(np.tril(ref.wide(u[index]))[:, : min(m, n - 1)], sign=last)

    refused = {"a zero column": lambda u: np.concatenate([0 * u[..., :1], u[..., 1:]], -1)} if m > 1 else {}
    return Call(
        "from_trapezoid",
        {"u": u, **({"sign": policy} if policy == "soft" or choices.once_in(2) else {})},
        {
            "u": Numbers(
                2,
                lambda s: len(s) > 1 and 1 <= s[-1] <= s[-2],
                real=True,
                precision=False,
                refused=refused,
                says="(u|vectors)",
            )
        },
        expected=lambda: {
            "matrix": Close(stack(matrix, lead, n).real, u.dtype, tol.forward(u.dtype, n + m)),
        },
        on="class",
        cls="Householder",
        options=("sign",),
        checks=False,
    )


def registry_columns(choices, types, lead, n, m):
    """Columns that are far from zero below the diagonal; for m = n the last number is in -1..1."""
    u = types.numbers(*lead, n, m, real=True)
    own = np.arange(m)
    u[..., own, own] += np.copysign(1, u[..., own, own])
    if m == n:
        u[..., -1, -1] = choices.rng.uniform(-1, 1, lead)
    return u


# ---------------------------------------------------------------- at random


def drawn_at_random(choices, face, stem):
    """random: orthogonal, of the requested dtype, reproducible from a seed."""
    entry, n = OBJECTS[stem], draw.SMALL.size(choices)
    n = next(k for k in range(n, 0, -1) if entry.exists(k))
    fields = {"r": (np.float64, np.float32), "c": (np.complex128, np.complex64)}
    dtype = np.dtype(choices.of([dtype for kind in "rc" if kind in entry.kinds for dtype in fields[kind]]))
    taken = inspect.signature(getattr(face.package, entry.cls).random).parameters
    source = "rng" if "rng" in taken else "generator"
    arguments = {"n": n, "dtype": Kind(dtype.name), source: Seed(choices.below(256))}
    further = entry.random(n)  # its numbers have limits of their own
    counts = [k for k in ("m", "negative_ones") if k in taken and k not in further]
    arguments |= {k: choices.between(0, n) for k in counts if choices.once_in(2)}
    arguments |= further
    return Call(
        "random",
        arguments,
        {},
        expected=lambda: {"matrix": Orthogonal((n, n), dtype)},
        on="class",
        cls=entry.cls,
        options=("n", "dtype", source, *counts),
        checks=False,
        sizes={"n": n},
    )
