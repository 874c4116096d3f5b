"""Every object once: how to draw a random one, its dense reference and that reference's gradient.

Adding an object means adding one `Object` to OBJECTS; the laws then run on all its variants, in every dtype, through
both faces.
A variant is a function (rng, n, dtype, batch) -> arguments, `dtype` being the type of the operator it makes.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

import reference as ref

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def real_of(dtype):
    """float32 for complex64, float64 for complex128."""
    return np.finfo(dtype).dtype.type


def is_complex(dtype):
    return np.dtype(dtype).kind == "c"


@dataclass(frozen=True)
class Variant:
    """One set of options: for which fields ("r", "c") it exists, and how its arguments are drawn."""

    fields: str
    draw: Callable
    growth: int = 1  # factors of the product are about growth x n


@dataclass(frozen=True)
class Argument:
    """One array argument: what its shape is without a batch, and what the fuzz tests try besides random arrays."""

    shape: Callable  # (n, m) -> shape; m is free
    real: bool = False  # of the real type also where W is complex
    trainable: bool = True
    special: Callable = lambda n: ()  # n -> values

    @property
    def rank(self):
        return len(self.shape(1, 1))


@dataclass(frozen=True)
class Object:
    cls: str
    arguments: Mapping[str, Argument]  # the first is required
    variants: Mapping[str, Variant]
    matrix: Callable  # arguments -> W of one operator, in double precision
    vjp: Callable  # (w_bar, arguments) -> gradients of one operator
    either: tuple = ()  # arguments of which only one may be given
    rectangular: bool = False  # W is (m, n)
    unitary: bool = True

    @property
    def fixed(self):
        """Arguments without a gradient."""
        return tuple(name for name, argument in self.arguments.items() if not argument.trainable)

    def square(self, n, m):
        """The shape of the first argument of an n x n operator."""
        return next(iter(self.arguments.values())).shape(n, n if self.rectangular else m)


def signs(rng, n, dtype, batch):
    return rng.choice(np.array([-1.0, 1.0]), (*batch, n)).astype(real_of(dtype))


def angles(rng, n, dtype, batch):
    return rng.uniform(-np.pi, np.pi, (*batch, n)).astype(real_of(dtype))


def vectors(rng, n, dtype, batch, m=3):
    """Columns at least one long: the gradient of a column grows like 1 / length."""
    u = ref.normal(rng, *batch, n, m, dtype=dtype)
    return {"vectors": (u + u / np.linalg.norm(u, axis=-2, keepdims=True)).astype(dtype)}


def upper(rng, n, dtype, batch):
    return {"upper": 0.5 * ref.normal(rng, *batch, n * (n - 1) // 2, dtype=dtype)}


HOUSEHOLDER = Object(
    cls="Householder",
    arguments={
        "vectors": Argument(lambda n, m: (n, m)),
        "sign": Argument(lambda n, m: (), real=True, special=lambda n: (1.0, -1, 0.5, 2.0)),
        "phases": Argument(lambda n, m: (n,), real=True),
    },
    either=("sign", "phases"),
    variants={
        "plain": Variant("rc", vectors),
        "many": Variant("rc", lambda rng, n, dtype, batch: vectors(rng, n, dtype, batch, 2 * n + 1), growth=2),
        "sign": Variant(
            "rc",
            lambda rng, n, dtype, batch: {
                **vectors(rng, n, dtype, batch),
                "sign": rng.choice(np.array([-1.0, 1.0]), batch).astype(real_of(dtype)),
            },
        ),
        "phases": Variant(
            "c",
            lambda rng, n, dtype, batch: {**vectors(rng, n, dtype, batch), "phases": angles(rng, n, dtype, batch)},
        ),
        "real vectors, phases": Variant(
            "c",
            lambda rng, n, dtype, batch: {
                **vectors(rng, n, real_of(dtype), batch),
                "phases": angles(rng, n, dtype, batch),
            },
        ),
    },
    matrix=ref.householder,
    vjp=ref.householder_vjp,
)

CAYLEY = Object(
    cls="Cayley",
    arguments={
        "upper": Argument(lambda n, m: (n * (n - 1) // 2,)),
        "diagonal": Argument(lambda n, m: (n,), real=True),
        "signs": Argument(
            lambda n, m: (n,), real=True, trainable=False, special=lambda n: (np.where(np.arange(n) % 2, -1.0, 1.0),)
        ),
        "phases": Argument(lambda n, m: (n,), real=True),
    },
    either=("signs", "phases"),
    variants={
        "plain": Variant("rc", upper),
        "signs": Variant(
            "rc", lambda rng, n, dtype, batch: {**upper(rng, n, dtype, batch), "signs": signs(rng, n, dtype, batch)}
        ),
        "diagonal, phases": Variant(
            "c",
            lambda rng, n, dtype, batch: {
                **upper(rng, n, dtype, batch),
                "diagonal": 0.5 * ref.normal(rng, *batch, n, dtype=real_of(dtype)),
                "phases": angles(rng, n, dtype, batch),
            },
        ),
        "real upper, phases": Variant(
            "c",
            lambda rng, n, dtype, batch: {
                **upper(rng, n, real_of(dtype), batch),
                "phases": angles(rng, n, dtype, batch),
            },
        ),
    },
    matrix=ref.cayley,
    vjp=ref.cayley_vjp,
)


def weight(rng, n_out, n_in, dtype, batch):
    return {"weight": ref.normal(rng, *batch, n_out, n_in, dtype=dtype) / np.sqrt(n_in).astype(real_of(dtype))}


DENSE = Object(
    cls="Dense",
    arguments={"weight": Argument(lambda n, m: (m, n))},
    variants={
        "square": Variant("rc", lambda rng, n, dtype, batch: weight(rng, n, n, dtype, batch)),
        "wide": Variant("rc", lambda rng, n, dtype, batch: weight(rng, n - 2, n, dtype, batch)),
        "tall": Variant("rc", lambda rng, n, dtype, batch: weight(rng, n + 3, n, dtype, batch)),
    },
    matrix=ref.dense,
    vjp=ref.dense_vjp,
    rectangular=True,
    unitary=False,
)

OBJECTS = {"householder": HOUSEHOLDER, "cayley": CAYLEY, "dense": DENSE}


@dataclass(frozen=True)
class Case:
    """One variant of one object in one dtype."""

    stem: str
    variant: str
    dtype: type

    @property
    def object(self):
        return OBJECTS[self.stem]

    def __str__(self):
        return f"{self.stem}, {self.variant}, {np.dtype(self.dtype)}"

    def draw(self, rng, n, batch=()):
        arguments = self.object.variants[self.variant].draw(rng, n, self.dtype, batch)
        return {k: np.asarray(a) for k, a in arguments.items()}

    def factors(self, n):
        """How many factors the product has, for the tolerance."""
        return max(n * self.object.variants[self.variant].growth, 4)


CASES = [
    Case(stem, name, dtype)
    for stem, entry in OBJECTS.items()
    for name, variant in entry.variants.items()
    for dtype in DTYPES
    if ("c" if is_complex(dtype) else "r") in variant.fields
]


def members(batch):
    """The indices of a stack, one by one."""
    return itertools.product(*map(range, batch))
