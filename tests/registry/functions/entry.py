"""What the registry says of a function: its arguments, and what it refuses."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import reference as ref
from registry.entry import is_complex, real_of


class Draw:
    """Random arrays of a dtype."""

    def __init__(self, rng, dtype=np.float64):
        self.rng, self.dtype, self.complex = rng, dtype, is_complex(dtype)

    def __call__(self, *shape):
        return ref.normal(self.rng, *shape, dtype=self.dtype)

    def real(self, *shape):
        return ref.normal(self.rng, *shape, dtype=real_of(self.dtype))

    def orthogonal(self, n):
        return ref.cayley(self(n * (n - 1) // 2)).astype(self.dtype)

    def skew(self, *shape):
        a = self(*shape)
        return a - np.swapaxes(a, -1, -2).conj()


@dataclass(frozen=True)
class Function:
    """A function by its dotted name in a package, or of an operator."""

    arrays: Callable  # Draw -> the arrays of numbers by name
    options: Mapping[str, Any] = field(default_factory=dict)  # all other arguments, as they are by default or valid
    refused: tuple = ()  # changes of these arguments, the error, words of its message
    renamed: Mapping[str, str] = field(default_factory=dict)  # array -> its name in torch
    owner: Callable = lambda package, take: package
    faces: tuple = ("numpy", "torch")
    checks: bool = True  # takes check_finite in NumPy
    real: bool = False  # of real numbers alone
    smooth: bool = False  # has derivatives of every order in torch
    fixed: tuple = ()  # arrays without a gradient
    large: tuple = ()  # draws at which several threads are used

    def given(self, face, arguments):
        """Arguments as a package takes them."""
        named = {self.renamed.get(k, k) if face.name == "torch" else k: a for k, a in arguments.items()}
        return {k: face.take(a) if isinstance(a, np.ndarray) else a for k, a in named.items()}

    def arguments(self, face, draw):
        """All arguments of a face."""
        check = {"check_finite": True} if self.checks and face.checks else {}
        return self.given(face, {**self.options, **self.arrays(draw)}) | check

    def of(self, face, name):
        """The function of a face."""
        return operator.attrgetter(name.partition(",")[0])(self.owner(face.package, face.take))
