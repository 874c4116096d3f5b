"""What the registry says of an object."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isometry._objects import declaration


def real_of(dtype):
    """float32 for complex64, float64 for complex128."""
    return np.finfo(dtype).dtype.type


def is_complex(dtype):
    return np.dtype(dtype).kind == "c"


def gathered(arguments):
    """Arguments with the arrays `name.0`, `name.1`, ... of a list joined under its name."""
    joined = {}
    for name, a in arguments.items():
        owner, dot, _ = name.partition(".")
        if dot:
            joined.setdefault(owner, []).append(a)
        else:
            joined[name] = a
    return joined


def spread(arguments):
    """The inverse: the arrays of lists under names of their own."""
    flat = {}
    for name, a in arguments.items():
        several = isinstance(a, list) and name != "operators"  # a product has the gradients of each operator there
        flat |= {f"{name}.{k}": one for k, one in enumerate(a)} if several else {name: a}
    return flat


def none(*_):
    """No keywords besides the arrays."""
    return {}


@dataclass(frozen=True)
class Variant:
    """One set of options: the fields ("r", "c") it exists for, and how its arguments are drawn."""

    fields: str
    draw: Callable  # (rng, n, dtype, batch) -> arrays by name, those of a list as `name.0`, `name.1`, ...
    growth: int = 1  # factors of the product are about growth x n
    options: Callable = none  # n -> keywords that are no arrays of numbers
    square: bool = True  # W is (n, n)


@dataclass(frozen=True)
class Large:
    """Sizes at which the second thread is used."""

    variant: str
    n: int
    draw: Callable  # (rng, dtype) -> arrays by name
    rows: int
    idle: tuple = ()  # calls that use one thread at every size


@dataclass(frozen=True)
class Argument:
    """One array argument: its shape without a batch, and how the fuzz draws and corrupts it."""

    fill: Callable  # (rng, shape, dtype) -> random, well-conditioned values of order 1
    sizes: Callable | None = None  # (n, m) -> shape, where it is not that of the declaration; m is free
    needs_complex: bool = False  # only valid with a complex first argument
    directions: bool = False  # only the direction of each column, or vector, counts: the gradient goes like 1 / norm
    free: tuple = ()  # axes of any length, which no other argument has
    powers: tuple = (0, 0)  # range of powers of two by which the values may be multiplied
    refused: Mapping[str, Callable] = field(default_factory=dict)  # mistake -> (values -> invalid values)
    declared: Any = field(init=False)  # the argument of the declaration

    def shape(self, n, m):
        return self.sizes(n, m) if self.sizes else self.declared.shape({"n": n, "m": m})


@dataclass(frozen=True)
class Object:
    stem: str
    declaration: Any = field(init=False)
    arguments: Mapping[str, Argument]  # the arrays of a list are `name.0`, `name.1`, ...
    variants: Mapping[str, Variant]
    matrix: Callable  # arguments and options -> W of one operator, in double precision
    vjp: Callable  # (w_bar, arguments and options) -> gradients of one operator
    condition: Callable = lambda **arguments: 1.0  # of W with respect to its arguments
    inverse: Callable | None = None  # Haar-distributed matrix -> one that `from_matrix` serves
    options: Callable = none  # (n, m) -> keywords of the operators that the fuzz draws
    size: Callable | None = None  # arrays -> (n_out, n_in), where n and m do not give it
    sizes: Mapping[str, tuple] = field(
        default_factory=dict
    )  # variant -> (n, rows), or (n, rows, batch), of its own edges
    large: Mapping[str, Large] = field(default_factory=dict)
    random: Callable | None = none  # n -> further keywords of `random`; None if what it draws is not orthogonal

    def __post_init__(self):
        object.__setattr__(self, "declaration", declaration(self.stem))
        own = {a.name: a for a in self.declaration.arguments}
        for name, argument in self.arguments.items():
            object.__setattr__(argument, "declared", own[name.partition(".")[0]])

    @property
    def cls(self):
        return self.declaration.name

    def exists(self, n, option=""):
        """Whether there is an operator of size n, also with the option."""
        own = self.declaration.exists
        return all(own[key](n) for key in {"", option} if key in own)

    @property
    def rectangular(self):
        """W is (m, n)."""
        rows, columns = self.declaration.matrix
        return rows != columns

    @property
    def required(self):
        """So many arguments, the first ones, are always given."""
        always = [a.name for a in self.declaration.arguments[: self.declaration.required]]
        return sum(name.removesuffix(".0") in always for name in self.arguments)

    def rivals(self, name):
        """The arguments that are not given together with this one."""
        group = self.arguments[name].declared.group
        return [k for k, a in self.arguments.items() if group and k != name and a.declared.group == group]

    @property
    def fixed(self):
        """Arguments without a gradient."""
        return tuple(name for name, argument in self.arguments.items() if not argument.declared.trained)

    @property
    def far(self):
        """Arguments that may have any magnitude."""
        return tuple(name for name, argument in self.arguments.items() if argument.powers != (0, 0))

    @property
    def kinds(self):
        """The fields that it exists for."""
        return "".join(variant.fields for variant in self.variants.values())

    def square(self, n, m):
        """The shape of the first argument of an n x n operator."""
        return next(iter(self.arguments.values())).shape(n, n if self.rectangular else m)

    def build(self, package, arguments):
        """The operator of a package, from arrays and options by name."""
        return getattr(package, self.cls)(**gathered(arguments))

    def reference(self, arguments):
        """W of one operator, in double precision."""
        return self.matrix(**gathered(arguments))

    def gradients(self, w_bar, arguments):
        """The gradients of its arrays, in double precision."""
        return spread(self.vjp(w_bar, **gathered(arguments)))
