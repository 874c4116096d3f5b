"""Products of reflections in LAPACK's storage, one factor at a time, for any tau; QR by reflections."""

import numpy as np

from reference.numbers import cotangent, product, wide


def vectors_of(a):
    """V: the part below the diagonal, ones on it."""
    return np.tril(wide(a), -1) + np.eye(*np.shape(a))


def reflector_factors(a, tau):
    """H_j = I - tau_j v_j v_j^H, j = 0, ..., k - 1."""
    v, tau = vectors_of(a), wide(tau)
    return [np.eye(len(v)) - tau[j] * np.outer(v[:, j], v[:, j].conj()) for j in range(len(tau))]


def reflectors(a, tau):
    """Q = H_0 H_1 ... H_{k-1}, m x m."""
    return product(reflector_factors(a, tau), len(a))


def reflectors_vjp(q_bar, a, tau):
    """a_bar and tau_bar for the cotangent of Q, by the product rule: with G that of H_j = I - tau v v^H,
    v_bar = -(conj(tau) G v + tau G^H v), tau_bar = -v^H G v."""
    v, tau, factors = vectors_of(a), wide(tau), reflector_factors(a, tau)
    a_bar, tau_bar = np.zeros(v.shape, complex), np.zeros(tau.shape, complex)
    for j in range(len(tau)):
        g, u = cotangent(factors, j, q_bar), v[:, j]
        a_bar[:, j] = -(tau[j].conj() * (g @ u) + tau[j] * (g.conj().T @ u))
        tau_bar[j] = -np.vdot(u, g @ u)
    own = lambda bar, x: bar if np.iscomplexobj(x) else bar.real
    return own(np.tril(a_bar, -1), a), own(tau_bar, tau)


def geqrf(a):
    """R on and above the diagonal, v below, and tau: H_j^H takes column j to beta e_1, beta = -sign(Re alpha) ||x||."""
    a = wide(a).copy()
    m, n = a.shape
    tau = np.zeros(min(m, n), a.dtype)
    for j in range(len(tau)):
        alpha, below = a[j, j], a[j + 1 :, j]
        if not below.any() and alpha.imag == 0:
            continue
        size = np.abs(a[j:, j]).max()
        beta = -np.copysign(size * np.linalg.norm(a[j:, j] / size), alpha.real)
        tau[j] = (beta - alpha) / beta
        v = np.append(1, below / (alpha - beta))
        a[j:, j + 1 :] -= tau[j].conj() * np.outer(v, v.conj() @ a[j:, j + 1 :])
        a[j, j], a[j + 1 :, j] = beta, v[1:]
    return a, tau
