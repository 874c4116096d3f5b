"""Orthogonal and unitary matrices with structure: permutations, blocks, reflections, repeated eigenvalues, -1.

Each class is a function (rng, n, dtype) -> W in double precision, unitary if dtype is complex.
"""

import numpy as np

import reference as ref
from support import structure


def turned(*angles, axes=False):
    """Planes turned by the angles, in turn: of coordinates, or of random directions."""

    def matrix(rng, n, dtype):
        w, p = np.eye(n), rng.permutation(n)
        for k in range(n // 2):
            t, plane = angles[k % len(angles)], p[2 * k : 2 * k + 2]
            w[np.ix_(plane, plane)] = [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]
        q = np.eye(n) if axes else ref.haar(rng, n, np.result_type(dtype, np.float64))
        return q @ w @ q.conj().T

    return matrix


def signed(make):
    return lambda rng, n, dtype: make(rng, n, dtype) * rng.choice([-1.0, 1.0], n)


def permutation(rng, n, dtype):
    return np.eye(n)[rng.permutation(n)]


def scalar(rng, n, dtype):
    """A multiple of the identity."""
    return np.eye(n) * (np.exp(0.3j) if np.dtype(dtype).kind == "c" else -1)


def roots(rng, n, dtype):
    """Diagonal, of a few roots of unity."""
    return np.diag(rng.choice([1, -1, 1j, -1j, np.exp(1j)] if np.dtype(dtype).kind == "c" else [1.0, -1.0], n))


def blocks(rng, n, dtype):
    """Block-diagonal in some order of the coordinates: random blocks, permutations and single roots of unity."""
    w, i = np.zeros((n, n), np.result_type(dtype, np.float64)), 0
    while i < n:
        k = min(int(rng.integers(1, 5)), n - i)
        make = (ref.haar, permutation, roots)[rng.integers(3)]
        w[i : i + k, i : i + k] = make(rng, k, dtype) if make is not ref.haar else ref.haar(rng, k, w.dtype)
        i += k
    p = rng.permutation(n)
    return w[p][:, p] if rng.integers(2) else w


def fourier(rng, n, dtype):
    """The discrete Fourier transform, or its real relative by cosines and sines."""
    f = np.fft.fft(np.eye(n)) / np.sqrt(n)
    return f if np.dtype(dtype).kind == "c" else f.real + f.imag


def of_array(name, make):
    """The orthogonal matrix that is made of an array with structure."""
    return lambda rng, n, dtype: make(structure.draw(name, rng, (n, n), np.result_type(dtype, np.float64)))


def factor(a):
    """Q of A = Q R."""
    size = np.abs(a).max(axis=0)
    return np.linalg.qr(a / np.where(size > 1e-200, size, 1))[0]


def exponential(a):
    """e^A of the skew part, whose angles are at most 2 pi."""
    a = (a - a.conj().T) / 2
    a = a * min(1.0, 2 * np.pi / max(np.linalg.norm(a, 2), 1e-300))
    angles, v = np.linalg.eigh(1j * a)
    w = (v * np.exp(-1j * angles)) @ v.conj().T
    return w if np.iscomplexobj(a) else w.real


def reflections(a):
    """Along up to three columns."""
    w = np.eye(len(a), dtype=a.dtype)
    for u in a.T[:3]:
        size = np.abs(u).max()
        if size > 1e-200:
            u = u / size / np.linalg.norm(u / size)
            w = w - 2 * np.outer(w @ u, u.conj())
    return w


def beside_the_identity(rng, n, dtype):
    """The identity plus a skew matrix of denormal numbers."""
    a = structure.draw("denormal", rng, (n, n), np.result_type(dtype, np.float64))
    return np.eye(n) + a - a.conj().T


PI = np.pi
NAMED = {
    "identity": lambda rng, n, dtype: np.eye(n),
    "minus one": lambda rng, n, dtype: -np.eye(n),
    "scalar": scalar,
    "roots": roots,
    "permutation": permutation,
    "signed permutation": signed(permutation),
    "cycle": lambda rng, n, dtype: np.roll(np.eye(n), 1, 0),
    "reversal": lambda rng, n, dtype: np.eye(n)[::-1],
    "blocks": blocks,
    "signed blocks": signed(blocks),
    "fourier": fourier,
    "reflection of ones": lambda rng, n, dtype: np.eye(n) - 2 / n,
    "half turns": turned(PI),
    "half turns of axes": turned(PI, axes=True),
    "half turns and others": turned(PI, 1.0, 1.0),
    "quarter turns": turned(PI / 2, axes=True),
    "one angle": turned(1.0),
    "nearly one angle": turned(1.0, 1.0 + 1e-12),
    "nearly half turns": turned(PI - 1e-15, PI - 1e-12, PI - 1e-8, PI - 1e-4),
    "nearly the identity": turned(1e-14, 1e-20, 1e-300),
    "small turns of axes": turned(1e-14, 1e-160, 5e-324, axes=True),
    "beside the identity": beside_the_identity,
    "nearly minus one": lambda rng, n, dtype: -turned(1e-14, 1e-8)(rng, n, dtype),
}
NAMED |= {f"{name} {kind}": of_array(name, make) for name in structure.CLASSES for kind, make in
          (("factored", factor), ("exponential", exponential), ("reflections", reflections))}  # fmt: skip
NAMED |= {
    "nearly quarter turns": turned(PI / 2, PI / 2 + 1e-9, PI / 2 + 2e-9),
    "clusters": turned(PI, PI - 1e-8, 1.0, 1.0 + 1e-12, 1e-9, 0.0),
}


def draw(name, rng, n, dtype):
    """One of a class, rounded to the dtype; the determinant may have either sign."""
    return np.asarray(NAMED[name](rng, n, dtype)).astype(dtype)
