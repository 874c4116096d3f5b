"""One valid call: the function, its arguments, what its result must be, what could be wrong with each argument."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

import reference as ref
import tolerance as tol

# ---------------------------------------------------------------- values that each face has in its own form


@dataclass(frozen=True)
class Raw:
    """Handed over as it is: neither made a tensor nor given a layout."""

    value: object


@dataclass(frozen=True)
class Seed:
    """A source of random numbers."""

    number: int


@dataclass(frozen=True)
class Kind:
    """A dtype by its name."""

    name: str


# ---------------------------------------------------------------- arguments


def never(shape):
    return False


@dataclass(frozen=True)
class Numbers:
    """An array of numbers: which shapes and types are served in its place, all other arguments left as they are."""

    rank: int  # with fewer axes it is refused
    fits: Callable = never  # shape -> whether another shape than its own would be no mistake of this argument
    blames: Mapping[int, str] = field(default_factory=dict)  # axis -> who is named when it has another length
    real: bool = False
    real_as_result: bool = False  # NumPy face: must be real where the result is
    required: bool = True
    precision: bool = True  # torch face: must be the precision of other arguments
    refused: Mapping[str, Callable] = field(default_factory=dict)  # mistake -> (values -> values that are refused)
    says: str = ""  # what is named in the message about these, if not the argument


# ---------------------------------------------------------------- results


@dataclass(frozen=True)
class Close:
    """A value by its relative error in Frobenius norm, measured after a multiplication by `units`."""

    value: np.ndarray
    dtype: np.dtype
    tolerance: float
    floor: float = 1e-3
    units: np.ndarray | float = 1.0

    def check(self, found, what):
        alike(found, self.value, self.dtype, what)
        found, value = (ref.wide(a) * self.units for a in (found, self.value))
        tol.close(found, value, self.tolerance, what, max(self.floor, np.finfo(float).tiny))


@dataclass(frozen=True)
class Elementwise:
    """A value by the error of each entry relative to a size of its own."""

    value: np.ndarray
    dtype: np.dtype
    tolerance: float
    size: np.ndarray

    def check(self, found, what):
        alike(found, self.value, self.dtype, what)
        tol.each_close(found, self.value, self.tolerance, self.size, what)


@dataclass(frozen=True)
class Orthogonal:
    """Any orthogonal or unitary matrix, or a stack of them."""

    shape: tuple
    dtype: np.dtype
    bound: float = tol.UNITARITY

    def check(self, found, what):
        alike(found, np.empty(self.shape), self.dtype, what)
        for w in found.reshape(-1, *self.shape[-2:]):
            error = ref.orthogonality_error(w)
            assert error <= self.bound, f"{what} is not orthogonal: {error:.3g} n eps"


@dataclass(frozen=True)
class Slope:
    """A gradient by its product with two directions, its own and a random one: the slope of the loss along them."""

    argument: np.ndarray
    loss: Callable  # direction -> slope
    tolerance: float
    floor: float

    def check(self, found, what):
        alike(found, self.argument, self.argument.dtype, what)
        found, length = ref.wide(found), np.linalg.norm(found)
        other = ref.normal(np.random.default_rng(0), *found.shape, dtype=found.dtype)
        direction = found / (length or 1) + other / (np.linalg.norm(other) or 1)
        gap = abs(np.vdot(direction, found).real - self.loss(direction))
        bound = self.tolerance * max(length, self.floor)
        assert gap <= bound, f"{what}: slope off by {gap:.2e} > {bound:.1e}"


@dataclass(frozen=True)
class WithNan:
    """What comes of a NaN that was let through."""

    shape: tuple
    dtype: np.dtype

    def check(self, found, what):
        alike(found, np.empty(self.shape), self.dtype, what)
        assert np.isnan(found).any(), f"{what}: the NaN is lost"


def alike(found, value, dtype, what):
    assert isinstance(found, np.ndarray | np.generic), f"{what} is a {type(found).__name__}"
    assert found.dtype == dtype, f"{what} is {found.dtype}, expected {np.dtype(dtype)}"
    assert found.shape == np.shape(value), f"{what} has shape {found.shape}, expected {np.shape(value)}"


# ---------------------------------------------------------------- calls


@dataclass
class Call:
    """`function` on the package, on a class of it (`cls`), or on an operator built from the arguments in `held`.

    A function of the package with arguments in `held` takes the operator made of them as `transition`.
    """

    function: str
    arguments: dict
    sites: dict  # argument -> Numbers, for the arrays among them
    expected: Callable  # () -> {part of the result: what it must be}
    on: str = "package"  # or "class", "operator"
    cls: str = ""
    held: tuple = ()
    options: tuple = ()  # keywords with a table of wrong values, given or not
    unwelcome: dict = field(default_factory=dict)  # argument that was not given -> value that must not be added
    wanted: tuple = ()  # arguments with a gradient
    complex: bool = False  # whether the result is
    sizes: dict = field(default_factory=dict)  # letters of the shapes that wrong values are made of
    may_refuse: str = ""  # the message with which the call may also be refused
    checks: bool = True  # NumPy face: whether it takes check_finite
    layouts: dict = field(default_factory=dict)  # argument -> number of a memory layout
    threads: int = 1

    def __str__(self):
        owner = {"package": "", "class": f"{self.cls}.", "operator": f"{self.cls}(...)."}[self.on]
        arguments = ", ".join(f"{k}={told(a)}" for k, a in self.arguments.items())
        return f"{owner}{self.function}({arguments})"


def told(value):
    if isinstance(value, Raw):
        return f"Raw({told(value.value)})"
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"<{value.dtype} {value.shape}>"
    return f"{value!r} {value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)
