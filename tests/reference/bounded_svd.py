"""Matrices with singular values within a margin around 1."""

import numpy as np

from reference.numbers import wide


def within(logits, margin):
    """sigma = (1 - margin) + 2 margin sigmoid(p), and its derivative by p."""
    p = wide(logits)
    e = np.exp(-np.abs(p))
    return (1 - margin) + 2 * margin * np.where(p < 0, e, 1) / (1 + e), 2 * margin * e / (1 + e) ** 2


def bounded_svd(u, logits, v, margin):
    """W = U diag(sigma) V^H."""
    return wide(u) @ np.diag(within(logits, margin)[0]) @ wide(v).conj().T


def bounded_svd_vjp(w_bar, u, logits, v, margin):
    """U_bar = W_bar V diag(sigma), V_bar = W_bar^H U diag(sigma), sigma_bar_i = Re(U[:,i]^H W_bar V[:,i])."""
    w_bar, u, v = wide(w_bar), wide(u), wide(v)
    sigma, slope = within(logits, margin)
    sigma_bar = np.einsum("ir,ij,jr->r", u.conj(), w_bar, v).real
    return {"u": w_bar @ v * sigma, "logits": sigma_bar * slope, "v": w_bar.conj().T @ u * sigma}
