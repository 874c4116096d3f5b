"""Double precision, products of matrices, and random arrays."""

import functools

import numpy as np


def wide(a):
    a = np.asarray(a)
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def product(factors, n):
    """Of n x n matrices, one after another."""
    return functools.reduce(np.matmul, factors, np.eye(n))


def cotangent(factors, j, w_bar):
    """The product rule: that of factor j is L^H W_bar R^H with L, R the products left and right of it."""
    left, right = (product(some, len(w_bar)) for some in (factors[:j], factors[j + 1 :]))
    return left.conj().T @ wide(w_bar) @ right.conj().T


def orthogonality_error(w):
    """max|W^H W - I| / (n eps) for one matrix in its own precision."""
    eps, w = np.finfo(np.asarray(w).dtype).eps, wide(w)
    return np.abs(w.conj().T @ w - np.eye(w.shape[1])).max() / (w.shape[1] * eps)


def normal(rng, *shape, dtype=np.float64):
    """Standard normal draws; complex ones have both parts standard normal."""
    z = rng.standard_normal(shape)
    return (z + 1j * rng.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else z.astype(dtype)


def cofactors(w):
    """The gradient of det in every entry, det(W) W^{-T} where W has an inverse: that of W = U S V^H, factor by
    factor."""
    u, s, vh = np.linalg.svd(wide(w))
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1.0, s[..., None, :]).prod(-1)
    unit = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return unit * (u.conj() * others[..., None, :]) @ vh.conj()


def haar(rng, n, dtype=np.float64):
    """QR of a Gaussian matrix, Q times the phases of diag(R)."""
    q, r = np.linalg.qr(normal(rng, n, n, dtype=np.result_type(dtype, np.float64)))
    return (q * (np.diag(r) / np.abs(np.diag(r)))).astype(dtype)


def slope_along(function, ct, step=1e-3):
    """d/dt Re sum conj(ct) function(t) at t = 0 by the five-point rule, error O(step^4)."""
    value = lambda t: np.vdot(ct, function(t)).real
    return (value(-2 * step) - 8 * value(-step) + 8 * value(step) - value(2 * step)) / (12 * step)
