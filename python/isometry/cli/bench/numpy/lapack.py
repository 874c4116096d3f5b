"""LAPACK's own products of reflections, through SciPy: values only, for lower-trapezoidal vectors."""

from __future__ import annotations

import numpy as np

from isometry.cli.bench.numpy.sides import Array, Arrays, Side, has_scipy

BLOCK = 64  # rows of workspace, for which LAPACK uses its blocked route


def orgqr() -> list[Side]:
    """W by ?orgqr; empty without SciPy."""
    if not has_scipy():
        return []
    from scipy.linalg import lapack

    def forward(arrays: Arrays) -> Array:
        u = arrays["vectors"]
        n, m = u.shape
        a = np.zeros((n, n), u.dtype, order="F")
        a[:, :m], tau = normalised(u)
        return getattr(lapack, letter(u) + "orgqr")(a, tau, lwork=BLOCK * n, overwrite_a=1)[0]

    return [Side("scipy.linalg.lapack orgqr", forward, None)]


def ormqr() -> list[Side]:
    """Rows times W^T by ?ormqr, whose columns are these rows; empty without SciPy."""
    if not has_scipy():
        return []
    from scipy.linalg import lapack

    def forward(arrays: Arrays) -> Array:
        u, x = arrays["vectors"], arrays["x"]
        v, tau = normalised(u)
        work = BLOCK * (len(x) + BLOCK + 1)
        return getattr(lapack, letter(u) + "ormqr")("L", "N", np.asfortranarray(v), tau, x.T, work)[0].T

    return [Side("scipy.linalg.lapack ormqr", forward, None)]


def normalised(u: Array) -> tuple[Array, Array]:
    """LAPACK's form: tau = 2 / ||v||^2 and a unit diagonal, which it does not read."""
    v = u / np.diagonal(u)
    return v, 2 / np.einsum("ij,ij->j", v, v)


def letter(a: Array) -> str:
    return "s" if a.dtype == np.float32 else "d"
