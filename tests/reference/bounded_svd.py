"""Matrices with singular values within a margin around 1."""

import numpy as np

from reference.numbers import wide


def bounded_svd(u, logits, v, margin):
    """W = U diag(1 + margin tanh(p / 2)) V^H."""
    return wide(u) @ np.diag(1 + margin * np.tanh(wide(logits) / 2)) @ wide(v).conj().T


def bounded_svd_vjp(w_bar, u, logits, v, margin):
    """U_bar = W_bar V diag(sigma), V_bar = W_bar^H U diag(sigma), sigma_bar_i = Re(U[:,i]^H W_bar V[:,i])."""
    w_bar, u, p, v = wide(w_bar), wide(u), wide(logits), wide(v)
    sigma, slope = 1 + margin * np.tanh(p / 2), margin / 2 * (1 - np.tanh(p / 2) ** 2)
    sigma_bar = np.einsum("ir,ij,jr->r", u.conj(), w_bar, v).real
    return {"u": w_bar @ v * sigma, "logits": sigma_bar * slope, "v": w_bar.conj().T @ u * sigma}
