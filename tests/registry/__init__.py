# ruff: noqa: F401  the names of what the tests share
"""Every object once: how to draw a random one, its dense reference and the reference's gradient.

Adding an object means adding its `Object`, in a module of its name; the laws then run on all its variants,
in every dtype, through both faces. A variant draws arguments from (rng, n, dtype, batch), where `dtype` is the type of
the resulting operator.
"""

import itertools
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from isometry import _core
from registry.entry import gathered, is_complex, real_of, spread

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)

OBJECTS = {stem: getattr(import_module(f"registry.{stem}"), stem.upper()) for stem in _core.OBJECTS}


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

    @property
    def kind(self):
        return self.object.variants[self.variant]

    @property
    def square(self):
        return self.kind.square

    @property
    def first(self):
        """Whether it stands for its object where one variant is enough."""
        return self.variant == next(iter(self.object.variants))

    def size(self, n):
        """The least size from n on for which it exists."""
        return next(k for k in itertools.count(n) if self.object.exists(k, self.variant))

    def draw(self, rng, n, batch=()):
        return {k: np.asarray(a) for k, a in self.kind.draw(rng, n, self.dtype, batch).items()}

    def options(self, n):
        """The keywords that are no arrays of numbers."""
        return self.kind.options(n)

    def build(self, package, arguments, n):
        """The operator of a package."""
        return self.object.build(package, {**arguments, **self.options(n)})

    def factors(self, n):
        """The number of factors of the product, for the tolerance."""
        return max(n * self.kind.growth, 4)


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
