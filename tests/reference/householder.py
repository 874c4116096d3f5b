"""Products of reflections."""

import numpy as np

from reference.numbers import wide


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
    w = np.eye(np.shape(vectors)[0])
    for factor in householder_factors(vectors, sign, phases):
        w = w @ factor
    return w


def reflection_vjp(u, g):
    """u_bar for the cotangent g of H(u): with N = ||u||^2, -2/N (g u + g^H u) + 4/N^2 Re(u^H g u) u."""
    norm = np.vdot(u, u).real
    return -2 / norm * (g @ u + g.conj().T @ u) + 4 / norm**2 * np.vdot(u, g @ u).real * u


def householder_vjp(w_bar, vectors, sign=None, phases=None):
    """The product rule: the cotangent of factor j is L^H W_bar R^H with L, R the products left and right of it."""
    u, factors = wide(vectors), householder_factors(vectors, sign, phases)
    n, m = u.shape

    def cotangent(j):
        left, right = np.eye(n), np.eye(n)
        for factor in factors[:j]:
            left = left @ factor
        for factor in factors[j + 1 :]:
            right = right @ factor
        return left.conj().T @ wide(w_bar) @ right.conj().T

    columns = [reflection_vjp(u[:, j], cotangent(j)) for j in range(m)]
    grads = {"vectors": np.stack(columns, axis=1) if m else np.zeros((n, 0))}
    if sign is not None:
        grads["sign"] = cotangent(m)[n - 1, n - 1].real
    if phases is not None:
        grads["phases"] = np.imag(np.diag(cotangent(m)) * np.exp(-1j * wide(phases)))
    return grads
