"""Shared by the `random` constructors: the dtype, which determines the field, the generator, stacks, Haar matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike

from isometry._arrays import Array, DType
from isometry._rules import check, check_expression

_Draw = TypeVar("_Draw", bound=Callable[..., Any])

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


def stackable(draw: _Draw) -> _Draw:
    """A `random` that draws stacks of a `batch_shape`, one member after another from the same generator."""

    @wraps(draw)
    def random(cls: type[Any], *args: Any, batch_shape: Sequence[int] = (), rng: Seed = None, **options: Any) -> Any:
        batch = check_expression.batch(batch_shape)
        if batch == ():
            return draw(cls, *args, rng=rng, **options)
        rng = generator(rng)  # an empty stack has the shapes of a member
        return cls._stacked([draw(cls, *args, rng=rng, **options) for _ in range(max(prod(batch), 1))], batch)

    return cast(_Draw, random)


def haar(rng: np.random.Generator, n: int, dtype: DType) -> Array:
    """A Haar-distributed orthogonal or unitary matrix: Q of a Gaussian matrix times the phases of diag(R)."""
    z = rng.standard_normal((n, n))
    q, r = np.linalg.qr(z + 1j * rng.standard_normal((n, n)) if dtype.kind == "c" else z)
    d = np.diagonal(r)
    w: Array = (q * (d / np.abs(d))).astype(dtype)
    return w
