"""Whether a nearest matrix and its gradient are right, told without a second algorithm for either.

W is orthonormal, and <W, A> is the sum of the singular values: no other matrix has both. The gradient is that of the
singular vectors in double precision, of which those of the kernel of A are taken from W: there W is one of several.
"""

import numpy as np

import reference as ref


def scaled(a):
    """Matrices in double precision, times powers of two that make their largest parts about 1, and the exponents."""
    wide = ref.wide(a)
    parts = np.maximum(np.abs(wide.real), np.abs(wide.imag)).max((-2, -1), initial=0)
    powers = -np.frexp(parts)[1][..., None, None]

    def by(x):
        # in two steps: 2^1074 is no number
        return np.ldexp(np.ldexp(x, powers // 2), powers - powers // 2)

    return (by(wide.real) + 1j * by(wide.imag) if np.iscomplexobj(a) else by(wide)), powers


def errors(a, w, *, special=False):
    """The larger error of W^H W and of <W, A> over the sum, in max(m, n) eps; infinity of what is not finite."""
    m, n = a.shape[-2:]
    if m < n:
        a, w = _adjoint(a), _adjoint(w)
    unit = max(m, n) * np.finfo(a.dtype).eps
    wide, own = scaled(a)[0], ref.wide(w)
    s = np.linalg.svd(wide, compute_uv=False)
    sums = s.sum(-1)
    if special:
        sums = sums - 2 * s[..., -1] * _negative(wide, s)
        own = own * np.where(np.linalg.det(np.where(np.isfinite(own), own, 0)) > 0, 1, np.inf)[..., None, None]
    gram = np.abs(_adjoint(own) @ own - np.eye(min(m, n))).max((-2, -1))
    inner = np.abs((np.conj(own) * wide).sum((-2, -1)).real - sums) / np.where(s[..., 0] > 0, s.sum(-1), 1)
    worst = np.maximum(gram, inner) / unit
    return np.where(np.isfinite(worst), worst, np.inf)


def gradient_error(a, w, ct, bar, *, special=False):
    """The error of one gradient in units of n eps s_1 / (the smallest s_i + s_j that divides), infinity of what is not
    finite; and whether a sum is so near the limit that no one can say if it divides.
    """
    if a.shape[0] < a.shape[1]:
        a, w, ct, bar = (_adjoint(x) for x in (a, w, ct, bar))
    m, n = a.shape
    eps, complex_ = np.finfo(a.dtype).eps, np.iscomplexobj(a)
    wide, powers = scaled(a)
    own, ct = ref.wide(w), ref.wide(ct)
    u, s, vh = np.linalg.svd(wide, full_matrices=False)
    v, least = _adjoint(vh), m * eps * s[0]
    kernel = s <= least
    if special and _negative(wide, s) and not kernel[-1]:
        # W says which direction of those of the smallest singular value is turned
        last = s <= s[-1] * (1 + n * eps)
        turned = _adjoint(u[:, last]) @ own @ v[:, last]
        signs, mixed = np.linalg.eigh((turned + turned.T) / 2)
        v[:, last], u[:, last] = v[:, last] @ mixed, u[:, last] @ mixed * np.sign(signs)
        s[last] *= np.sign(signs)
    elif kernel.any():
        # W of the kernel, free of what the others span
        rest = u[:, ~kernel]
        left = own @ v[:, kernel]
        p, _, qh = np.linalg.svd(left - rest @ (_adjoint(rest) @ left), full_matrices=False)
        u[:, kernel] = p @ qh
    x = _adjoint(u) @ ct @ v
    sums = np.abs(s[:, None] + s)
    divides = sums > least
    y = (x - _adjoint(x)) * np.divide(1, s[:, None] + s, where=divides, out=np.zeros((n, n)))
    expected = u @ y
    used = sums[np.triu_indices(n, 0 if complex_ else 1)]
    if m > n:
        expected = expected + (ct @ v - u @ x) * np.divide(1, s, where=~kernel, out=np.zeros(n))
        used = np.append(used, np.abs(s))
    expected = expected @ _adjoint(v)
    if not np.isfinite(bar).all():
        return np.inf, False
    found = ref.wide(bar)
    # A was scaled: the gradient is of the inverse scale
    down = -powers
    found = np.ldexp(found.real, down) + (1j * np.ldexp(found.imag, down) if complex_ else 0)
    # what overflows is the largest number
    with np.errstate(over="ignore"):
        most = np.ldexp(float(np.finfo(a.dtype).max), down)
    bounded = np.clip(expected.real, -most, most)
    expected = bounded + 1j * np.clip(expected.imag, -most, most) if complex_ else bounded
    near = bool(((used > least / 30) & (used < 30 * least)).any())
    kept = used[used > least]
    condition = s[0] / kept.min() if kept.size else 1
    # a gradient that cancels is no smaller than the rounding of its terms, and of ct
    terms = (np.abs(x) + np.abs(x).T) * np.divide(1, sums, where=divides, out=np.zeros((n, n)))
    size = max(np.linalg.norm(expected), np.linalg.norm(terms), np.linalg.norm(ct) / s[0] if s[0] > 0 else 1)
    return np.linalg.norm(found - expected) / size / (n * eps * condition), near


def _negative(wide, s):
    """Where det A < 0, of matrices that are not singular to rounding."""
    return (np.linalg.slogdet(wide)[0] < 0) & (s[..., -1] > 0)


def _adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))
