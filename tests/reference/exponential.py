"""The exponential of a skew matrix, by its eigenvectors."""

import numpy as np

from reference.cayley import skew
from reference.numbers import wide


def spectrum(a):
    """(lambda, Q) with A = i Q diag(lambda) Q^H."""
    return np.linalg.eigh(-1j * a)


def exponential(upper, diagonal=None):
    """W = Q diag(e^{i lambda}) Q^H."""
    a = skew(upper, diagonal)
    values, q = spectrum(a)
    w = (q * np.exp(1j * values)) @ q.conj().T
    return w if a.dtype.kind == "c" else w.real


def exponential_vjp(w_bar, upper, diagonal=None):
    """A_bar = Q [(Q^H W_bar Q) * conj(Phi)] Q^H, Phi_jk = e^{i (l_j + l_k) / 2} sinc((l_j - l_k) / 2), packed."""
    a, w_bar = skew(upper, diagonal), wide(w_bar)
    values, q = spectrum(a)
    sums, gaps = values[:, None] + values, values[:, None] - values
    phi = np.exp(0.5j * sums) * np.sinc(gaps / (2 * np.pi))  # numpy's sinc x is sin(pi x) / (pi x)
    a_bar = q @ ((q.conj().T @ w_bar @ q) * phi.conj()) @ q.conj().T
    if a.dtype.kind != "c" and w_bar.dtype.kind != "c":
        a_bar = a_bar.real
    above = np.triu_indices(len(a), 1)
    grads = {"upper": a_bar[above] - a_bar.T.conj()[above]}
    if diagonal is not None:
        grads["diagonal"] = np.diag(a_bar).imag
    return grads
