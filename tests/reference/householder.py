"""Products of reflections."""

import numpy as np

from reference.numbers import cotangent, product, wide


def reflection(u):
    """H(u) = I - 2 u u^H / ||u||^2."""
    return np.eye(len(u)) - 2 * np.outer(u, u.conj()) / np.vdot(u, u).real


def householder_factors(vectors, sign=None, phases=None):
    """H(U[:,0]), ..., H(U[:,m-1]) and the last factor diag(1, ..., 1, s) or diag(e^{i phases}), if there is one."""
    u = wide(vectors)
    n, m = u.shape
    factors = [reflection(u[:, j]) for j in range(m)]
    if sign is not None:
        factors.append(np.diag([1.0] * (n - 1) + [float(sign)]))
    if phases is not None:
        factors.append(np.diag(np.exp(1j * wide(phases))))
    return factors


def householder(vectors, sign=None, phases=None):
    """W = H(U[:,0]) ... H(U[:,m-1]) E, one factor at a time."""
    return product(householder_factors(vectors, sign, phases), len(vectors))


def reflection_vjp(u, g):
    """u_bar for the cotangent g of H(u): with N = ||u||^2, -2/N (g u + g^H u) + 4/N^2 Re(u^H g u) u."""
    norm = np.vdot(u, u).real
    return -2 / norm * (g @ u + g.conj().T @ u) + 4 / norm**2 * np.vdot(u, g @ u).real * u


def householder_vjp(w_bar, vectors, sign=None, phases=None):
    u, factors = wide(vectors), householder_factors(vectors, sign, phases)
    n, m = u.shape
    columns = [reflection_vjp(u[:, j], cotangent(factors, j, w_bar)) for j in range(m)]
    grads = {"vectors": np.stack(columns, axis=1) if m else np.zeros((n, 0))}
    if sign is not None:
        grads["sign"] = cotangent(factors, m, w_bar)[n - 1, n - 1].real
    if phases is not None:
        grads["phases"] = np.imag(np.diag(cotangent(factors, m, w_bar)) * np.exp(-1j * wide(phases)))
    return grads
