"""Every object once: how to draw a random one, its dense reference and the reference's gradient.

Adding an object means adding one `Object` to OBJECTS; the laws then run on all its variants, in every dtype, through
both faces. A variant is a function (rng, n, dtype, batch) -> arguments, where `dtype` is the type of the resulting
operator.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

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
    """One set of options: the fields ("r", "c") it exists for, and how its arguments are drawn."""

    fields: str
    draw: Callable
    growth: int = 1  # factors of the product are about growth x n


@dataclass(frozen=True)
class Argument:
    """One array argument: its shape without a batch, and how the fuzz draws and corrupts it."""

    shape: Callable  # (n, m) -> shape; m is free
    fill: Callable  # (rng, shape, dtype) -> random, well-conditioned values of order 1
    real: bool = False  # of the real type even if W is complex
    trainable: bool = True
    turns: bool = False  # real, but makes W complex
    needs_complex: bool = False  # only valid with a complex first argument
    soft: bool = False  # W is orthogonal for some of its values only
    directions: bool = False  # only the direction of each column matters: the gradient is inverse to the norm
    powers: tuple = (0, 0)  # range of powers of two by which the values may be multiplied
    refused: Mapping[str, Callable] = field(default_factory=dict)  # mistake -> (values -> invalid values)

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
    either: tuple = ()  # mutually exclusive arguments
    rectangular: bool = False  # W is (m, n)
    condition: Callable = lambda **arguments: 1.0  # of W with respect to its arguments
    unitary: bool = True

    @property
    def fixed(self):
        """Arguments without a gradient."""
        return tuple(name for name, argument in self.arguments.items() if not argument.trainable)

    def square(self, n, m):
        """The shape of the first argument of an n x n operator."""
        return next(iter(self.arguments.values())).shape(n, n if self.rectangular else m)


def coins(rng, shape, dtype):
    return rng.choice(np.array([-1.0, 1.0]), shape).astype(dtype)


def turns(rng, shape, dtype):
    return rng.uniform(-np.pi, np.pi, shape).astype(dtype)


def halves(rng, shape, dtype):
    return 0.5 * ref.normal(rng, *shape, dtype=dtype)


def long_columns(rng, shape, dtype):
    """Columns of norm at least one: the gradient of a column grows like 1 / norm."""
    u = ref.normal(rng, *shape, dtype=dtype)
    return (u + u / np.linalg.norm(u, axis=-2, keepdims=True)).astype(dtype)


def soft_sign(rng, shape, dtype):
    """In -1..1, often one of the ends."""
    return np.clip(rng.uniform(-2, 2, shape), -1, 1).astype(dtype)


def last(value, a):
    """The array with its last column set to the value."""
    a = a.copy()
    a[..., -1] = value
    return a


def signs(rng, n, dtype, batch):
    return coins(rng, (*batch, n), real_of(dtype))


def angles(rng, n, dtype, batch):
    return turns(rng, (*batch, n), real_of(dtype))


def vectors(rng, n, dtype, batch, m=3):
    return {"vectors": long_columns(rng, (*batch, n, m), dtype)}


def upper(rng, n, dtype, batch):
    return {"upper": halves(rng, (*batch, n * (n - 1) // 2), dtype)}


HOUSEHOLDER = Object(
    cls="Householder",
    arguments={
        "vectors": Argument(
            lambda n, m: (n, m),
            long_columns,
            directions=True,
            powers=(-40, 40),
            refused={"a zero column": lambda a: last(0.0, a)},
        ),
        "sign": Argument(
            lambda n, m: (),
            soft_sign,
            real=True,
            soft=True,
            refused={"beyond 1": lambda a: np.full_like(a, 1.001), "below -1": lambda a: np.full_like(a, -1.5)},
        ),
        "phases": Argument(lambda n, m: (n,), turns, real=True, turns=True, powers=(-20, 6)),
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
        "upper": Argument(lambda n, m: (n * (n - 1) // 2,), halves, powers=(-20, 6)),
        "diagonal": Argument(lambda n, m: (n,), halves, real=True, needs_complex=True, powers=(-20, 6)),
        "signs": Argument(
            lambda n, m: (n,),
            coins,
            real=True,
            trainable=False,
            refused={"zero": lambda a: last(0.0, a), "no sign": lambda a: last(-1.01, a)},
        ),
        "phases": Argument(lambda n, m: (n,), turns, real=True, turns=True, powers=(-20, 6)),
    },
    either=("signs", "phases"),
    condition=lambda upper, diagonal=0.0, **others: 1 + sum(np.abs(a).max(initial=0) for a in (upper, diagonal)),
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


def any_matrix(rng, shape, dtype):
    return ref.normal(rng, *shape, dtype=dtype) / np.sqrt(shape[-1]).astype(real_of(dtype))


def weight(rng, n_out, n_in, dtype, batch):
    return {"weight": any_matrix(rng, (*batch, n_out, n_in), dtype)}


DENSE = Object(
    cls="Dense",
    arguments={"weight": Argument(lambda n, m: (m, n), any_matrix, powers=(-30, 30))},
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
        """The number of factors of the product, for the tolerance."""
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
