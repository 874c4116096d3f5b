"""The rows of rotations of space: a vector of its own for each, in single precision; and beside SciPy's `Rotation`,
which computes in double precision.

Flops of a rotation: 15 of its matrix, 18 of the product with a vector. Angles are uniform between 0 and pi, so that
every angle counts.
"""

from collections.abc import Iterator

import numpy as np

import isometry
from harness.row import Bar, Row
from rows.numpy import formulas
from rows.numpy.sides import SCIPY, Array, Arrays, Side, normal, rows_of

MILLION = 10**6
BESIDE_SCIPY = 200_000
LAWS = (isometry.Cayley, isometry.Exponential)
Law = type[isometry.Cayley | isometry.Exponential]


def rows() -> Iterator[Row]:
    for law in LAWS:
        yield from through_matrices(law, MILLION)
    if SCIPY:
        for law in LAWS:
            yield from turned(law, BESIDE_SCIPY)
        yield from logarithms(BESIDE_SCIPY)


def through_matrices(law: Law, count: int) -> Iterator[Row]:
    """Against forming the matrices first and np.matvec."""
    peer = "matrices, numpy.matvec"
    times = getattr(np, "matvec", lambda w, x: (w @ x[..., None])[..., 0])  # of NumPy 2.2
    turned = formulas.turned_exponential if law is isometry.Exponential else formulas.turned_cayley
    return rows_of(
        f"{law.__name__.lower()} of {count} rotations of R^3",
        lambda rng: {"upper": normal(rng, count, 3), "x": normal(rng, count, 3)},
        lambda a: law(a["upper"]).apply(a["x"]),
        [Side(peer, lambda a: times(law(a["upper"]).matrix(), a["x"]))],
        (33.0 * count, 0.0),
        reference=lambda a: turned(a["upper"], a["x"]),
        bar=Bar(peer, 1.0, 1.5),
    )


def turned(law: Law, count: int) -> Iterator[Row]:
    """From rotation vectors to turned vectors."""
    from scipy.spatial.transform import Rotation

    return rows_of(
        f"rotations of {count} vectors, {law.__name__.lower()}",
        lambda rng: {"r": vectors(rng, count), "x": rng.standard_normal((count, 3))},
        lambda a: law.from_rotvec(a["r"])(a["x"]),
        [Side("scipy Rotation", lambda a: Rotation.from_rotvec(a["r"]).apply(a["x"]))],
        (33.0 * count, 0.0),
        reference=lambda a: formulas.turned_exponential(upper(a["r"]), a["x"]),
        bar=Bar("scipy Rotation", 1.0, 2.0),
    )


def logarithms(count: int) -> Iterator[Row]:
    """From matrices to rotation vectors."""
    from scipy.spatial.transform import Rotation

    def draw(rng: np.random.Generator) -> Arrays:
        r = vectors(rng, count)
        return {"r": r, "w": Rotation.from_rotvec(r).as_matrix()}

    return rows_of(
        f"rotations of {count} matrices",
        draw,
        lambda a: isometry.Exponential.from_matrix(a["w"]).rotvec(),
        [Side("scipy Rotation", lambda a: Rotation.from_matrix(a["w"]).as_rotvec())],
        reference=lambda a: a["r"],
        bar=Bar("scipy Rotation", 1.0, 2.0),
    )


def vectors(rng: np.random.Generator, count: int) -> Array:
    """Rotation vectors of every direction, of angles uniform between 0 and pi."""
    axes = rng.standard_normal((count, 3))
    return axes / np.linalg.norm(axes, axis=-1, keepdims=True) * rng.uniform(0, np.pi, (count, 1))


def upper(r: Array) -> Array:
    """The triangle of the A with A x = r cross x."""
    return r[:, ::-1] * (-1.0, 1.0, -1.0)
