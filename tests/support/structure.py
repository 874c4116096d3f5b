"""Arrays with structure: zeros, copies, blocks, signs and scales, which random dense arrays never have.

Each class is a function (rng, m, n) -> m x n matrix in double precision. `draw` gives it any shape and dtype; `CLASSES`
names them all, so that a new class reaches every test which draws from it.
"""

import numpy as np


def dense(rng, m, n):
    return rng.standard_normal((m, n))


def zero(_, m, n):
    return np.zeros((m, n))


def negative_zero(_, m, n):
    return -np.zeros((m, n))


def ones(_, m, n):
    return np.ones((m, n))


def zero_rows(rng, m, n):
    return dense(rng, m, n) * (rng.random((m, 1)) < 0.6)


def zero_columns(rng, m, n):
    return dense(rng, m, n) * (rng.random(n) < 0.6)


def sparse(rng, m, n):
    return dense(rng, m, n) * (rng.random((m, n)) < 0.2)


def repeated_rows(rng, m, n):
    return dense(rng, m, n)[rng.integers(0, (m + 1) // 2, m)]


def repeated_columns(rng, m, n):
    return repeated_rows(rng, n, m).T


def nearly_repeated_rows(rng, m, n):
    return repeated_rows(rng, m, n) * (1 + 1e-12 * dense(rng, m, n))


def opposite_rows(rng, m, n):
    return repeated_rows(rng, m, n) * rng.choice([-1.0, 1.0], (m, 1))


def holed_permutation(rng, m, n):
    return np.eye(max(m, n))[rng.permutation(max(m, n))][:m, :n] * (rng.random((m, 1)) < 0.7)


def partial_identity(rng, m, n):
    return np.eye(m, n) * (np.arange(n) < rng.integers(0, n + 1))


def nearly_identity(rng, m, n):
    return np.eye(m, n) + 1e-14 * dense(rng, m, n)


def diagonal(rng, m, n):
    return np.eye(m, n) * rng.choice([-2.0, -1.0, 0.0, 1.0, 1.0, 3.0], n)


def blocks(rng, m, n):
    """Block-diagonal, blocks of up to five rows, some of them zero."""
    a, i, j = np.zeros((m, n)), 0, 0
    while i < m and j < n:
        rows, columns = rng.integers(1, 6, 2)
        a[i : i + rows, j : j + columns] = rng.choice([0.0, 1.0, 1.0]) * dense(rng, rows, columns)[: m - i, : n - j]
        i, j = i + rows, j + columns
    return a


def triangular(rng, m, n):
    return np.triu(dense(rng, m, n))


def nilpotent(_, m, n):
    return np.eye(m, n, 1)


def rank_one(rng, m, n):
    return np.outer(rng.standard_normal(m), rng.standard_normal(n))


def rank_two(rng, m, n):
    return dense(rng, m, 2) @ dense(rng, 2, n)


def small_integers(rng, m, n):
    return rng.integers(-2, 3, (m, n)).astype(float)


def signs(rng, m, n):
    return rng.choice([-1.0, 1.0], (m, n))


def checkerboard(_, m, n):
    return (-1.0) ** np.add.outer(np.arange(m), np.arange(n))


def skew(rng, m, n):
    a = dense(rng, max(m, n), max(m, n))
    return (a - a.T)[:m, :n]


def toeplitz(rng, m, n):
    return rng.standard_normal(m + n)[np.subtract.outer(np.arange(m), np.arange(n)) + n]


def hilbert(_, m, n):
    return 1 / (1.0 + np.add.outer(np.arange(m), np.arange(n)))


def vandermonde(_, m, n):
    return np.vander(np.linspace(-1, 1, m), n)


def graded_rows(rng, m, n):
    """The last rows 1e-40 times the first."""
    return dense(rng, m, n) * np.logspace(0, -40, m)[:, None]


def graded_columns(rng, m, n):
    return graded_rows(rng, n, m).T


def huge_column(rng, m, n):
    a = dense(rng, m, n)
    a[:, rng.integers(n)] *= 1e15
    return a


def huge_entry(rng, m, n):
    a = dense(rng, m, n)
    a[rng.integers(m), rng.integers(n)] = 1e30
    return a


def tiny(rng, m, n):
    """Denormal in single precision."""
    return 1e-40 * dense(rng, m, n)


def denormal(rng, m, n):
    """Denormal in double precision."""
    return 1e-310 * dense(rng, m, n)


#: Every class by name.
CLASSES = {
    f.__name__: f
    for f in (
        dense, zero, negative_zero, ones, zero_rows, zero_columns, sparse, repeated_rows, repeated_columns,
        nearly_repeated_rows, opposite_rows, holed_permutation, partial_identity, nearly_identity, diagonal,
        blocks, triangular, nilpotent, rank_one, rank_two, small_integers, signs, checkerboard, skew, toeplitz,
        hilbert, vandermonde, graded_rows, graded_columns, huge_column, huge_entry, tiny, denormal,
    )
}  # fmt: skip

#: Classes with entries far outside of [1e-3, 1e3], for arguments that are not scale-free.
SCALED = ("graded_rows", "graded_columns", "huge_column", "huge_entry", "tiny", "denormal")


def draw(name, rng, shape, dtype, phases="random"):
    """An array of this class: the last two axes are a matrix's, a vector is a column, members differ.

    Complex arrays have the structure in both parts ("random": the columns also have random phases), or are real
    ("none") or imaginary ("quarter").
    """
    shape, dtype = tuple(shape), np.dtype(dtype)
    if 0 in shape:
        return np.zeros(shape, dtype)
    m, n = shape[-2:] if len(shape) > 1 else (*shape, 1) if shape else (1, 1)
    count = int(np.prod(shape[:-2], dtype=int))
    members = [_member(name, rng, m, n, dtype, phases) for _ in range(count)]
    return np.reshape(members, shape).astype(dtype)


def _member(name, rng, m, n, dtype, phases):
    a = CLASSES[name](rng, m, n)
    if dtype.kind != "c":
        return a
    if phases == "random":
        return a * np.exp(2j * np.pi * rng.random(n))
    return a * {"none": 1, "quarter": 1j}[phases]


def stack(rng, count, shape, dtype):
    """Members of different classes, (count, *shape): what one of them needs must not reach the others."""
    names = rng.permutation(list(CLASSES))
    return np.stack([draw(names[k % len(names)], rng, shape, dtype) for k in range(count)])


def named(test):
    """Parametrises a test over the classes."""
    import pytest

    return pytest.mark.parametrize("structure", list(CLASSES))(test)
