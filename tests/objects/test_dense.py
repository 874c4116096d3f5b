"""Specific properties of the dense operator: any rectangle, batched products of every size, and its errors."""

import numpy as np
import pytest

import isometry as iso
import reference as ref
from registry import DTYPES
from tolerance import close, forward, gradient, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
SIZES = [(1, 1, 1), (1, 7, 3), (5, 1, 2), (16, 16, 16), (17, 31, 5), (64, 48, 33), (100, 130, 70), (3, 257, 9)]


@DTYPE
@pytest.mark.parametrize("p,q,rows", SIZES)
def test_rectangles(dtype, p, q, rows, seed):
    w = ref.normal(seed, p, q, dtype=dtype)
    x, y = ref.normal(seed, rows, q, dtype=dtype), ref.normal(seed, rows, p, dtype=dtype)
    op = iso.Dense(w)
    assert op.shape == (p, q)
    identical(op.matrix(), w)
    wide_w, wide_x, wide_y = map(ref.wide, (w, x, y))
    close(op.apply(x), wide_x @ wide_w.T, forward(dtype, 2))
    close(op.apply_adjoint(y), wide_y @ wide_w.conj(), forward(dtype, 2))
    grads, x_bar = op.apply_vjp(x, y)
    close(grads["weight"], wide_y.T @ wide_x.conj(), gradient(dtype, 2))
    close(x_bar, wide_y @ wide_w.conj(), forward(dtype, 2))


@DTYPE
def test_stacks(dtype, seed):
    w, x = ref.normal(seed, 6, 4, 5, dtype=dtype), ref.normal(seed, 9, 6, 5, dtype=dtype)
    close(iso.Dense(w).apply(x), np.einsum("bij,kbj->kbi", ref.wide(w), ref.wide(x)), forward(dtype, 2))


def test_matrix_is_a_copy():
    w = np.eye(3)
    iso.Dense(w).matrix()[0, 0] = 7
    identical(w, np.eye(3))


@DTYPE
def test_random_is_haar_and_orthogonal(dtype):
    w = iso.Dense.random(12, rng=3, dtype=dtype).weight
    assert w.dtype == dtype
    assert ref.orthogonality_error(w) <= 20


@pytest.mark.parametrize("weight", [np.zeros(3), np.zeros(())], ids=["vector", "number"])
def test_refusals(weight):
    with pytest.raises(ValueError, match="weight"):
        iso.Dense(weight)


def test_refused_types():
    for weight in (np.ones((2, 2), np.float16), np.ones((2, 2), object), np.array([["a"]])):
        with pytest.raises(TypeError, match="weight"):
            iso.Dense(weight)
    for x, name in ((np.ones((3, 5)), "x"), (np.ones(()), "x"), (np.ones((2, 4), np.float16), "x")):
        with pytest.raises((ValueError, TypeError), match=name):
            iso.Dense(np.ones((3, 4))).apply(x)
