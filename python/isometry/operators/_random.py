"""Shared by the `random` constructors: the dtype, which determines the field, the generator, Haar matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from isometry._arrays import Array, DType
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


def haar(rng: np.random.Generator, n: int, dtype: DType) -> Array:
    """A Haar-distributed orthogonal or unitary matrix: Q of a Gaussian matrix times the phases of diag(R)."""
    z = rng.standard_normal((n, n))
    q, r = np.linalg.qr(z + 1j * rng.standard_normal((n, n)) if dtype.kind == "c" else z)
    d = np.diagonal(r)
    w: Array = (q * (d / np.abs(d))).astype(dtype)
    return w
