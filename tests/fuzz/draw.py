"""Sizes, types and arrays of a call."""

from dataclasses import dataclass

import numpy as np

import reference as ref
from fuzz.call import Numbers
from registry import DTYPES, is_complex, real_of
from support import structure

F4, F8, C8, C16 = DTYPES
INTEGERS = (np.int64, np.int32, np.uint8, np.int16)
OTHER = {F4: F8, F8: F4, C8: C16, C16: C8}


#: Classes whose entries are zero or of order one, as the bounds of the calls expect.
STRUCTURES = [kind for kind in structure.CLASSES if kind not in structure.SCALED]


def structured(rng, shape, dtype):
    """Numbers with the structure of a class."""
    return structure.draw(rng.choice(STRUCTURES), rng, shape, dtype, rng.choice(["random", "none", "quarter"]))


def numbers(rng, *shape, dtype):
    """Random numbers, sometimes with structure."""
    plain = not shape or rng.integers(4)
    return ref.normal(rng, *shape, dtype=dtype) if plain else structured(rng, shape, dtype)


class Types:
    """The dtypes of one call: mostly one, real with complex, and in the NumPy face both precisions."""

    def __init__(self, choices, face):
        self.choices, self.base = choices, choices.of((F8, F4, C16, C8))
        self.mixed = face.mixes and choices.once_in(3)

    def pick(self, real=False):
        dtype = self.base
        if is_complex(dtype) and (real or self.choices.once_in(4)):
            dtype = real_of(dtype)
        return OTHER[dtype] if self.mixed and self.choices.once_in(3) else dtype

    def numbers(self, *shape, real=False):
        return numbers(self.choices.rng, *shape, dtype=self.pick(real))


def coarsest(*dtypes):
    """The one with the largest rounding error."""
    return max(dtypes, key=lambda dtype: np.finfo(dtype).eps)


@dataclass(frozen=True)
class Sizes:
    """The ranges from which sizes are drawn."""

    n: tuple = (1, 6)
    wide: tuple = (7, 24)  # sometimes n is in this range, beyond the width of the kernels' vectors
    m: tuple = (0, 5)
    leads: tuple = ((), ("*",), (), ("*", "*"))  # leading axes
    rows: tuple = (1, 2, 3, 2, 1, 3, 2, 0)  # their lengths; sometimes zero

    def size(self, choices):
        return choices.between(*(self.wide if choices.once_in(16) else self.n))

    def leading(self, choices):
        return tuple(choices.of(self.rows) for _ in choices.of(self.leads))


SMALL = Sizes()
# Sizes at which threads, blocks and the tails of tiles are used.
LARGE = Sizes((25, 80), (81, 110), (0, 70), (("*",),), (40, 7, 300, 0, 130, 1))


def part(choices, full):
    """Leading axes that broadcast to `full`."""
    return tuple(1 if choices.once_in(3) else s for s in full[choices.below(len(full) + 1) :])


def broadcasts(*shapes):
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def scaled(a, powers):
    """The array times powers of two, exactly."""
    return (a * np.exp2(powers).astype(real_of(a.dtype))).astype(a.dtype)


def powers(choices, shape, low=-20, high=20):
    """Powers of two for the rows of an array, mostly none."""
    return choices.rng.integers(low, high + 1, shape) if choices.once_in(3) else np.zeros(shape, int)


def exactly(shape, **keywords):
    """An array that admits no other shape."""
    return Numbers(rank=len(shape), **keywords)


def cotangent(choices, types, face, result, shape):
    """Of the result's own type; in the NumPy face of any valid one."""
    if face.mixes and choices.once_in(3):
        return types.numbers(*shape, real=not is_complex(result))
    return numbers(choices.rng, *shape, dtype=result)


def finished(choices, face, call):
    """The call with a memory layout for every argument, and sometimes with a check of its values or without."""
    call.threads = call.threads or 1
    if choices.once_in(2):
        call.layouts = {k: choices.of(face.ways) for k in call.arguments}
    if call.checks and face.checks and choices.once_in(4):
        call.arguments["check_finite"] = choices.of((True, False))
    return call
