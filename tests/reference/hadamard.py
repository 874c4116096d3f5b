"""Products of Hadamard and diagonal matrices."""

import numpy as np

from reference.numbers import wide


def jacobsthal(q):
    """chi(j - i), chi the quadratic character modulo the prime q."""
    chi = np.array([0 if a == 0 else 1 if pow(a, (q - 1) // 2, q) == 1 else -1 for a in range(q)])
    return chi[np.subtract.outer(np.arange(q), np.arange(q)).T % q]


def bordered(q, first):
    s = np.ones((q + 1, q + 1))
    s[0, 0], s[1:, 0], s[1:, 1:] = 0, first, jacobsthal(q)
    return s


def prime(q):
    return q > 1 and all(q % d for d in range(2, q))


def paley(p):
    """The entries +-1 of order p, or None."""
    if p % 4 == 0 and prime(p - 1):
        return np.eye(p) + bordered(p - 1, -1)
    if p % 8 == 4 and prime(p // 2 - 1):
        c = bordered(p // 2 - 1, 1)
        return np.kron(c, [[1, 1], [1, -1]]) + np.kron(np.eye(p // 2), [[1, -1], [-1, -1]])
    return None


def entries(n):
    """The entries +-1 of order n, Sylvester's times those of the smallest order; None if there is none."""
    found = np.ones((1, 1)) if n & (n - 1) == 0 else None
    for p in range(12, n + 1, 4):
        if found is None and n % p == 0 and (n // p) & (n // p - 1) == 0:
            found = paley(p)
    while found is not None and len(found) < n:
        found = np.kron([[1, 1], [1, -1]], found)
    return found


def hadamard(signs):
    """W = H D_k ... H D_1."""
    h, w = entries(signs.shape[-1]), np.eye(signs.shape[-1])
    for d in wide(signs):
        w = h @ (d[:, None] * w) / np.sqrt(len(h))
    return w


def hadamard_vjp(w_bar, signs):
    """The gradient of every diagonal: of left diag(d) right it is the diagonal of left^T w_bar right^T."""
    h, signs = entries(signs.shape[-1]) / np.sqrt(signs.shape[-1]), wide(signs)
    bars = np.zeros_like(signs)
    for j in range(len(signs)):
        left, right = np.eye(len(h)), np.eye(len(h))
        for d in signs[:j]:
            right = h @ (d[:, None] * right)
        for d in signs[j + 1 :]:
            left = h @ (d[:, None] * left)
        bars[j] = np.einsum("ab,ac,bc->b", left @ h, wide(w_bar).real, right)
    return {"signs": bars}
