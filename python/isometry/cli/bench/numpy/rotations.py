"""A million rotations of R^3, each applied to a vector of its own, against forming the matrices first and np.matvec.

Flops: 15 of a matrix, 18 of its product with a vector.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import isometry
from isometry.cli.bench.numpy.sides import Array, Arrays, Side, normal, rows_of
from isometry.cli.bench.row import Bar, Row

COUNT = 10**6


def rows() -> Iterator[Row]:
    for law in (isometry.Cayley, isometry.Exponential):
        yield from make_row(law, COUNT)


def make_row(law: type[isometry.Cayley | isometry.Exponential], count: int) -> Iterator[Row]:
    product = getattr(np, "matvec", lambda w, x: (w @ x[..., None])[..., 0])  # of NumPy 2.2
    return rows_of(
        f"{law.__name__.lower()} of {count} rotations of R^3",
        lambda rng: {"upper": normal(rng, count, 3), "x": normal(rng, count, 3)},
        Side("isometry", lambda a: law(a["upper"]).apply(a["x"])),
        [Side("matrices, numpy.matvec", lambda a: product(law(a["upper"]).matrix(), a["x"]))],
        (33.0 * count, 0.0),
        reference=Side("float64", rodrigues if law is isometry.Exponential else euler),
        bar=Bar("matrices, numpy.matvec", 1.0, 1.5),
    )


def axis(a: Arrays) -> tuple[Array, Array]:
    """w with A x = w x x (cross product), and its norm."""
    w = a["upper"][:, ::-1] * (-1.0, 1.0, -1.0)
    return w, np.linalg.norm(w, axis=1)[:, None]


def turned(w: Array, sine: Array, cosine: Array, x: Array) -> Array:
    """x + s A x + c A^2 x."""
    once = np.cross(w, x)
    return x + sine * once + cosine * np.cross(w, once)


def rodrigues(a: Arrays) -> Array:
    """exp(A) x: s = sin(t) / t, c = (1 - cos(t)) / t^2 of the angle t = ||w||."""
    w, t = axis(a)
    return turned(w, np.sinc(t / np.pi), np.sinc(t / (2 * np.pi)) ** 2 / 2, a["x"])


def euler(a: Arrays) -> Array:
    """(I + A)^-1 (I - A) x: s = -2 / (1 + t^2), c = 2 / (1 + t^2)."""
    w, t = axis(a)
    return turned(w, -2 / (1 + t * t), 2 / (1 + t * t), a["x"])
