"""The operators and their VJPs in plain NumPy, as a careful user would write them: the peers, and the float64
reference. Products of reflections are W = I - U S U^T with S = T^-1, T = striu(U^T U) + diag(U^T U) / 2.
"""

import numpy as np

from rows.numpy.sides import NUMPY, Array, Arrays, Library

BLOCK = 64  # rows of workspace, for which LAPACK uses its blocked route


def upper(gram: Array) -> Array:
    """striu(M) + diag(M) / 2."""
    result = np.triu(gram)
    np.einsum("ii->i", result)[:] *= 0.5
    return result


def wy_matrix(library: Library, a: Arrays) -> Array:
    u = a["vectors"]
    w = u @ library.triangular(upper(u.T @ u), u.T, False)
    np.negative(w, out=w)
    np.einsum("ii->i", w)[:] += 1
    return w


def wy_apply(library: Library, a: Arrays) -> Array:
    """Rows of x times W^T."""
    u, x = a["vectors"], a["x"]
    return x - library.triangular(upper(u.T @ u), (x @ u).T, False).T @ u.T


def orgqr(a: Arrays) -> Array:
    """W by LAPACK, of lower-trapezoidal vectors."""
    from scipy.linalg import lapack

    u = a["vectors"]
    n, m = u.shape
    w = np.zeros((n, n), u.dtype, order="F")
    w[:, :m], tau = normalised(u)
    return getattr(lapack, letter(u) + "orgqr")(w, tau, lwork=BLOCK * n, overwrite_a=1)[0]


def ormqr(a: Arrays) -> Array:
    """Rows of x times W^T by LAPACK, whose columns are these rows."""
    from scipy.linalg import lapack

    u, x = a["vectors"], a["x"]
    v, tau = normalised(u)
    work = BLOCK * (len(x) + BLOCK + 1)
    return getattr(lapack, letter(u) + "ormqr")("L", "N", np.asfortranarray(v), tau, x.T, work)[0].T


def normalised(u: Array) -> tuple[Array, Array]:
    """LAPACK's form: tau = 2 / ||v||^2 and a unit diagonal, which it does not read."""
    v = u / np.diagonal(u)
    return v, 2 / np.einsum("ij,ij->j", v, v)


def letter(a: Array) -> str:
    return "s" if a.dtype == np.float32 else "d"


def skew(p: Array) -> Array:
    """A from the strict upper triangle of p."""
    a = np.triu(p, 1)
    return a - np.swapaxes(a, -1, -2)


def cayley_solve(given: Arrays) -> Array:
    """W = (I + A)^-1 (I - A) D."""
    a, eye = skew(given["square"]), np.eye(len(given["signs"]), dtype=given["square"].dtype)
    w = np.linalg.solve(eye + a, eye - a)
    w *= given["signs"]
    return w


def cayley_inverse(library: Library, a: Arrays) -> Array:
    """W = (2 S - I) D."""
    w = library.inverse(np.eye(len(a["signs"]), dtype=a["square"].dtype) + skew(a["square"]))
    w *= 2
    np.einsum("...ii->...i", w)[...] -= 1
    w *= a["signs"]
    return w


def cayley_checked(given: Arrays) -> Array:
    """W with its residual checked, for the reference, since batched solves are wrong on some CPUs."""
    w, a, eye = cayley_inverse(NUMPY, given), skew(given["square"]), np.eye(len(given["signs"]))
    residual = float(np.abs((eye + a) @ (w * given["signs"]) - (eye - a)).max())
    if residual > 1e-10:
        raise ArithmeticError(f"the float64 reference has a residual of {residual:.1e}")
    return w


def packed(matrix: Array) -> Array:
    """The strict upper triangle, row by row."""
    return matrix[(..., *np.triu_indices(matrix.shape[-1], 1))]


def turned_exponential(upper: Array, x: Array) -> Array:
    """exp(A) x in R^3: s = sin(t) / t, c = (1 - cos(t)) / t^2 of the angle t = ||w||."""
    t = np.linalg.norm(upper, axis=-1, keepdims=True)
    return turned(upper, np.sinc(t / np.pi), np.sinc(t / (2 * np.pi)) ** 2 / 2, x)


def turned_cayley(upper: Array, x: Array) -> Array:
    """(I + A)^-1 (I - A) x in R^3: s = -2 / (1 + t^2), c = 2 / (1 + t^2)."""
    scale = 2 / (1 + np.square(upper).sum(-1, keepdims=True))
    return turned(upper, -scale, scale, x)


def turned(upper: Array, s: Array, c: Array, x: Array) -> Array:
    """x + s A x + c A^2 x, where A x is a cross product."""
    w = upper[..., ::-1] * (-1.0, 1.0, -1.0)
    once = np.cross(w, x)
    return x + s * once + c * np.cross(w, once)


def modrelu(z: Array, bias: Array, out: Array) -> Array:
    """sign(z) max(|z| + b, 0), real; out may be z."""
    size = np.abs(z)
    size += bias
    np.maximum(size, 0, out=size)
    np.sign(z, out=out)
    out *= size
    return out


def leaky_relu(z: Array, slope: float, out: Array) -> Array:
    return np.maximum(z, slope * z, out=out)
