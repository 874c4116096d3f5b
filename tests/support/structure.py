"""Arrays with structure: zeros, copies, blocks, signs and scales, which random dense arrays never have.

Each class is a function (rng, m, n) -> m x n matrix in double precision. `draw` gives it any shape and dtype; `CLASSES`
names them all, so that a new class reaches every test which draws from it.
"""

import numpy as np


def dense(rng, m, n):
    return rng.standard_normal((m, n))


def repeated_rows(rng, m, n):
    return dense(rng, m, n)[rng.integers(0, (m + 1) // 2, m)]


def blocks(rng, m, n):
    """Block-diagonal, blocks of up to five rows, some of them zero."""
    a, i, j = np.zeros((m, n)), 0, 0
    while i < m and j < n:
        rows, columns = rng.integers(1, 6, 2)
        a[i : i + rows, j : j + columns] = rng.choice([0.0, 1.0, 1.0]) * dense(rng, rows, columns)[: m - i, : n - j]
        i, j = i + rows, j + columns
    return a


def skew(rng, m, n):
    a = dense(rng, max(m, n), max(m, n))
    return (a - a.T)[:m, :n]


def graded_rows(rng, m, n):
    """The last rows 1e-40 times the first."""
    return dense(rng, m, n) * np.logspace(0, -40, m)[:, None]


def huge_column(rng, m, n):
    a = dense(rng, m, n)
    a[:, rng.integers(n)] *= 1e15
    return a


def huge_entry(rng, m, n):
    a = dense(rng, m, n)
    a[rng.integers(m), rng.integers(n)] = 1e30
    return a


#: Every class by name.
CLASSES = {
    "dense": dense,
    "zero": lambda _, m, n: np.zeros((m, n)),
    "negative_zero": lambda _, m, n: -np.zeros((m, n)),
    "ones": lambda _, m, n: np.ones((m, n)),
    "zero_rows": lambda rng, m, n: dense(rng, m, n) * (rng.random((m, 1)) < 0.6),
    "zero_columns": lambda rng, m, n: dense(rng, m, n) * (rng.random(n) < 0.6),
    "sparse": lambda rng, m, n: dense(rng, m, n) * (rng.random((m, n)) < 0.2),
    "repeated_rows": repeated_rows,
    "repeated_columns": lambda rng, m, n: repeated_rows(rng, n, m).T,
    "nearly_repeated_rows": lambda rng, m, n: repeated_rows(rng, m, n) * (1 + 1e-12 * dense(rng, m, n)),
    "opposite_rows": lambda rng, m, n: repeated_rows(rng, m, n) * rng.choice([-1.0, 1.0], (m, 1)),
    "holed_permutation": lambda rng, m, n: (
        np.eye(max(m, n))[rng.permutation(max(m, n))][:m, :n] * (rng.random((m, 1)) < 0.7)
    ),
    "partial_identity": lambda rng, m, n: np.eye(m, n) * (np.arange(n) < rng.integers(0, n + 1)),
    "nearly_identity": lambda rng, m, n: np.eye(m, n) + 1e-14 * dense(rng, m, n),
    "diagonal": lambda rng, m, n: np.eye(m, n) * rng.choice([-2.0, -1.0, 0.0, 1.0, 1.0, 3.0], n),
    "blocks": blocks,
    "triangular": lambda rng, m, n: np.triu(dense(rng, m, n)),
    "nilpotent": lambda _, m, n: np.eye(m, n, 1),
    "rank_one": lambda rng, m, n: np.outer(rng.standard_normal(m), rng.standard_normal(n)),
    "rank_two": lambda rng, m, n: dense(rng, m, 2) @ dense(rng, 2, n),
    "small_integers": lambda rng, m, n: rng.integers(-2, 3, (m, n)).astype(float),
    "signs": lambda rng, m, n: rng.choice([-1.0, 1.0], (m, n)),
    "checkerboard": lambda _, m, n: (-1.0) ** np.add.outer(np.arange(m), np.arange(n)),
    "skew": skew,
    "toeplitz": lambda rng, m, n: rng.standard_normal(m + n)[np.subtract.outer(np.arange(m), np.arange(n)) + n],
    "hilbert": lambda _, m, n: 1 / (1.0 + np.add.outer(np.arange(m), np.arange(n))),
    "vandermonde": lambda _, m, n: np.vander(np.linspace(-1, 1, m), n),
    "graded_rows": graded_rows,
    "graded_columns": lambda rng, m, n: graded_rows(rng, n, m).T,
    "huge_column": huge_column,
    "huge_entry": huge_entry,
    "tiny": lambda rng, m, n: 1e-40 * dense(rng, m, n),  # denormal in single precision
    "denormal": lambda rng, m, n: 1e-310 * dense(rng, m, n),  # denormal in double precision
}

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
