"""The scaled Cayley transform."""

import numpy as np

from reference.numbers import wide


def size_of_packed(length):
    """n with n (n - 1) / 2 = length."""
    return round((1 + np.sqrt(1 + 8 * length)) / 2)


def skew(upper, diagonal=None):
    """A[i,j] = upper row by row, A[j,i] = -conj(A[i,j]), A[j,j] = i diagonal[j]."""
    upper = wide(upper)
    n = size_of_packed(len(upper))
    a = np.zeros((n, n), upper.dtype)
    a[np.triu_indices(n, 1)] = upper
    a = a - a.conj().T
    return a if diagonal is None else a + 1j * np.diag(wide(diagonal))


def last_factor(n, signs=None, phases=None):
    if phases is not None:
        return np.diag(np.exp(1j * wide(phases)))
    return np.eye(n) if signs is None else np.diag(wide(signs))


def cayley(upper, diagonal=None, signs=None, phases=None):
    """W = (I + A)^{-1} (I - A) D by one solve."""
    a = skew(upper, diagonal)
    i = np.eye(len(a))
    return np.linalg.solve(i + a, i - a) @ last_factor(len(a), signs, phases)


def cayley_vjp(w_bar, upper, diagonal=None, signs=None, phases=None):
    """A_bar = -2 S^H W_bar D^H S^H with S = (I + A)^{-1}; returns the packed gradients."""
    a, w_bar = skew(upper, diagonal), wide(w_bar)
    s = np.linalg.inv(np.eye(len(a)) + a)
    d = last_factor(len(a), signs, phases)
    a_bar = -2 * s.conj().T @ w_bar @ d.conj().T @ s.conj().T
    above = np.triu_indices(len(a), 1)
    grads = {"upper": a_bar[above] - a_bar.T.conj()[above]}
    if diagonal is not None:
        grads["diagonal"] = np.diag(a_bar).imag
    if phases is not None:
        grads["phases"] = np.imag(w_bar * cayley(upper, diagonal, signs, phases).conj()).sum(axis=0)
    return grads
