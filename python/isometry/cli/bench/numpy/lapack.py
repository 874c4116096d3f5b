"""LAPACK's own products of reflections, through SciPy: values only, for lower-trapezoidal vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isometry.cli.bench.numpy.sides import SCIPY, Array, Arrays, Side

BLOCK = 64  # rows of workspace, for which LAPACK uses its blocked route


def peers(forward: Callable[[Arrays], Array]) -> list[Side]:
    """One of the functions below as a side; none without SciPy."""
    return [Side(f"scipy.linalg.lapack {forward.__name__}", forward)] if SCIPY else []


def orgqr(arrays: Arrays) -> Array:
    """W by ?orgqr."""
    from scipy.linalg import lapack

    u = arrays["vectors"]
    n, m = u.shape
    a = np.zeros((n, n), u.dtype, order="F")
    a[:, :m], tau = normalised(u)
    return getattr(lapack, letter(u) + "orgqr")(a, tau, lwork=BLOCK * n, overwrite_a=1)[0]


def ormqr(arrays: Arrays) -> Array:
    """Rows times W^T by ?ormqr, whose columns are these rows."""
    from scipy.linalg import lapack

    u, x = arrays["vectors"], arrays["x"]
    v, tau = normalised(u)
    work = BLOCK * (len(x) + BLOCK + 1)
    return getattr(lapack, letter(u) + "ormqr")("L", "N", np.asfortranarray(v), tau, x.T, work)[0].T


def normalised(u: Array) -> tuple[Array, Array]:
    """LAPACK's form: tau = 2 / ||v||^2 and a unit diagonal, which it does not read."""
    v = u / np.diagonal(u)
    return v, 2 / np.einsum("ij,ij->j", v, v)


def letter(a: Array) -> str:
    return "s" if a.dtype == np.float32 else "d"
