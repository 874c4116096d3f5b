"""Shared by the `random` constructors: the dtype, which determines the field, the generator, stacks, Haar matrices."""

from collections.abc import Sequence
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import DTypeLike

from isometry._arrays import Array, DType, real_type
from isometry._objects._random import stackable as stackable_with
from isometry._rules import check

#: What `numpy.random.default_rng` takes.
Seed = int | Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None


def field(dtype: DTypeLike) -> DType:
    """The requested dtype, one of the four supported."""
    try:
        result: DType = np.dtype(dtype)
    except (TypeError, ValueError):
        check.kind("dtype", "a NumPy dtype", dtype)
    check.floating("dtype", result.name)
    return result.newbyteorder("=")


def generator(rng: Seed) -> np.random.Generator:
    """The generator itself, or a new one from a seed."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        check.kind("rng", "a numpy.random.Generator, a seed (integers of at least 0) or None", rng)


class Drawing(TypedDict, total=False):
    """The keywords of every `random`."""

    rng: Seed
    dtype: DTypeLike
    batch_shape: Sequence[int]


#: Makes a `random` that takes them; all members of a stack are drawn from one generator.
stackable = stackable_with(
    {"rng": "Seed", "dtype": "DTypeLike"}, lambda options: options | {"rng": generator(options.get("rng"))}
)


class Draw:
    """The generator and the dtype of a `random`; with `kind` the matrix is real, or complex, by its definition."""

    def __init__(self, options: Drawing, kind: Literal["real", "complex"] | None = None) -> None:
        dtype = options.get("dtype")
        self.dtype = field((np.complex128 if kind == "complex" else np.float64) if dtype is None else dtype)
        if kind is not None:
            (check.real if kind == "real" else check.complex_only)("dtype", self.dtype.name)
        self.rng, self.real = generator(options.get("rng")), real_type(self.dtype)

    def angles(self, *shape: int) -> Array:
        """Uniform on [-pi, pi)."""
        return self.rng.uniform(-np.pi, np.pi, shape).astype(self.real)

    def haar(self, n: int, batch: tuple[int, ...] = (), special: bool = False) -> Array:
        """Haar-distributed orthogonal or unitary matrices: Q of Gaussian ones times the phases of diag(R); with
        `special` of determinant 1, by a first column divided by it.
        """
        if self.dtype.kind == "c":
            parts = self.rng.standard_normal((*batch, 2, n, n))
            q, r = np.linalg.qr(parts[..., 0, :, :] + 1j * parts[..., 1, :, :])
        else:
            q, r = np.linalg.qr(self.rng.standard_normal((*batch, n, n)))
        d = np.diagonal(r, axis1=-2, axis2=-1)
        w: Array = q * (d / np.abs(d))[..., None, :]
        if special:
            w[..., 0] *= np.linalg.det(w).conj()[..., None]
        return w.astype(self.dtype)
