"""One valid call: the function, its arguments, the required result, the possible faults of each argument."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

import reference as ref
import tolerance as tol
from registry import gathered

# ---------------------------------------------------------------- values with a form per face


@dataclass(frozen=True)
class Raw:
    """Passed unchanged: neither made a tensor nor given a layout."""

    value: object


# ---------------------------------------------------------------- arguments


def never(shape):
    return False


@dataclass(frozen=True)
class Numbers:
    """An array of numbers: the shapes and types that are valid in its place, all other arguments unchanged."""

    rank: int  # fewer axes are an error
    fits: Callable = never  # shape -> whether another shape than its own is valid too
    blames: Mapping[int, str] = field(default_factory=dict)  # axis -> argument named if it has another length
    real: bool = False
    real_as_result: bool = False  # NumPy face: must be real if the result is
    required: bool = True
    precision: bool = True  # torch face: must have the precision of other arguments
    refused: Mapping[str, Callable] = field(default_factory=dict)  # mistake -> (values -> invalid values)


# ---------------------------------------------------------------- results


@dataclass(frozen=True)
class Close:
    """A value by its relative error in Frobenius norm, measured after scaling by `units`."""

    value: np.ndarray
    dtype: np.dtype
    tolerance: float
    floor: float = 1e-3
    units: np.ndarray | float = 1.0

    def check(self, found, what):
        alike(found, self.value, self.dtype, what)
        found, value = (self._flushed(a) * self.units for a in (found, self.value))
        tol.close(found, value, self.tolerance, what, max(self.floor, np.finfo(float).tiny))

    def _flushed(self, a):
        """In double precision, with zero for denormal numbers of the result's type, as kernels have it."""
        a = ref.wide(a)
        if np.issubdtype(self.dtype, np.inexact):
            tiny = np.finfo(self.dtype).tiny
            for part in (a.real, a.imag) if np.iscomplexobj(a) else (a,):
                part[np.abs(part) < tiny] = 0
        return a


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
    """A gradient by its product with two directions, itself and a random one: the slope of the loss along them."""

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
    """A result of arguments with NaN."""

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
    """`function` of the package, or of an operator of the class `cls` built from the arguments in `held`.

    A function of the package with arguments in `held` takes the operator built from them as `transition`.
    """

    function: str
    arguments: dict
    sites: dict = field(default_factory=dict)  # argument -> Numbers, for the arrays among them
    expected: Callable = dict  # () -> {part of the result: its requirement}
    on: str = "package"  # or "operator"
    cls: str = ""
    held: tuple = ()
    build: Callable | None = None  # (package, held) -> the operator, where that is not the class of them
    unwelcome: dict = field(default_factory=dict)  # absent argument -> value that must not be added
    wanted: tuple = ()  # arguments with a gradient
    complex: bool = False  # whether the result is complex
    may_refuse: str = ""  # message of an error that is also acceptable
    checks: bool = True  # NumPy face: whether it has check_finite
    layouts: dict = field(default_factory=dict)  # argument -> name of a memory layout
    threads: int = 0  # 0: those of the process
    split: int = 0  # units, where a state is a pair: states and cotangents are given side by side, and split

    def made(self, package, held):
        """The operator of a package."""
        return self.build(package, held) if self.build else getattr(package, self.cls)(**gathered(held))

    def __str__(self):
        owner = {"package": "", "operator": f"{self.cls}(...)."}[self.on]
        arguments = ", ".join(f"{k}={told(a)}" for k, a in self.arguments.items())
        return f"{owner}{self.function}({arguments})"


def told(value):
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"<{value.dtype} {value.shape}>"
    return f"{value!r} {value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)
