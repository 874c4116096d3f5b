"""Products of Hadamard and diagonal matrices."""

import numpy as np

from reference.numbers import wide


def root(q):
    """The prime r of which q is a power, or None."""
    r = next((d for d in range(2, q + 1) if q % d == 0), None)
    while r and q % r == 0:
        q //= r
    return r if q == 1 else None


def polynomial(a, r):
    """The digits of a to the base r, lowest first."""
    return [a % r, *polynomial(a // r, r)] if a else []


def number(digits, r):
    return sum(int(d) % r * r**k for k, d in enumerate(digits))


def product(a, b, f, r):
    """Of two polynomials modulo a monic one of degree e, f = x^e + the others; all by their numbers."""
    e = len(polynomial(f, r)) - 1
    digits = np.convolve(polynomial(a, r) or [0], polynomial(b, r) or [0]) % r
    for k in range(len(digits) - 1, e - 1, -1):
        digits[k - e : k + 1] -= digits[k] * np.array(polynomial(f, r))
    return number(digits, r)


def irreducible(q, r):
    """The first monic polynomial of degree e, q = r^e, that is no product of others."""
    monic = lambda size: [polynomial(a, r) for a in range(size, 2 * size)]
    sizes = [r**k for k in range(1, q.bit_length()) if r**k < q]
    products = {number(np.convolve(a, b), r) for size in sizes for a in monic(size) for b in monic(q // size)}
    return next(f for f in range(q, 2 * q) if f not in products)


def jacobsthal(q):
    """chi(j - i), chi the quadratic character of the field of q elements: polynomials over that of r, by numbers."""
    r = root(q)
    f = irreducible(q, r)
    chi = [-1] * q
    for a in range(q):
        chi[product(a, a, f, r)] = int(a > 0)
    digits = np.array([[a // r**k % r for k in range(q) if r**k < q] for a in range(q)])
    minus = (digits[None, :] - digits[:, None]) % r  # [i, j]: j - i
    return np.array(chi)[minus @ r ** np.arange(digits.shape[1])]


def bordered(q, first):
    s = np.ones((q + 1, q + 1))
    s[0, 0], s[1:, 0], s[1:, 1:] = 0, first, jacobsthal(q)
    return s


def paley(p):
    """The entries +-1 of order p, or None."""
    first, second = root(p - 1) if p % 4 == 0 else None, root(p // 2 - 1) if p % 8 == 4 else None
    if first and (not second or np.log(p - 1) / np.log(first) <= np.log(p // 2 - 1) / np.log(second) + 0.5):
        return np.eye(p) + bordered(p - 1, -1)
    if second:
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
