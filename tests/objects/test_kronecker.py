"""The Kronecker product against `numpy.kron`: values and gradients, of several dtypes."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, is_complex
from tolerance import close, forward, gradient

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
SIZES = {
    "binary": [(2, 2)] * 6,
    "one": [(5, 4)],
    "rectangular": [(2, 3), (4, 1), (1, 2)],
    "uneven": [(3, 3), (17, 5), (2, 2)],
    "numbers": [(1, 1), (1, 1)],
}
EACH = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)


def drawn(rng, sizes, dtype):
    return [ref.normal(rng, *size, dtype=dtype) for size in sizes]


def agree(found, expected, dtype, size):
    for got, want in zip(found, expected, strict=True):
        close(got, want if is_complex(dtype) else want.real, gradient(dtype, size), floor=1.0)


@DTYPE
@EACH
def test_values_and_gradients(sizes, dtype, seed):
    factors = drawn(seed, sizes, dtype)
    op, w = iso.Kronecker(factors), ref.kronecker(factors)
    size = max(w.shape)
    assert op.shape == w.shape
    assert op.dtype == dtype
    close(op.matrix(), w, forward(dtype, size))
    x, ct = (ref.normal(seed, 7, n, dtype=dtype) for n in (w.shape[1], w.shape[0]))
    close(op.apply(x), x @ w.T, forward(dtype, size), floor=1.0)
    close(op.apply_adjoint(ct), ct @ w.conj(), forward(dtype, size), floor=1.0)
    grads, x_bar = op.apply_vjp(x, ct)
    close(x_bar, ct @ w.conj(), forward(dtype, size), floor=1.0)
    agree(grads["factors"], ref.kronecker_vjp(ref.wide(ct).T @ x.conj(), factors)["factors"], dtype, size)
    grads, y_bar = op.apply_adjoint_vjp(ct, x)
    close(y_bar, x @ w.T, forward(dtype, size), floor=1.0)
    agree(grads["factors"], ref.kronecker_vjp(ref.wide(ct).T @ x.conj(), factors)["factors"], dtype, size)
    w_bar = ref.normal(seed, *w.shape, dtype=dtype)
    agree(op.matrix_vjp(w_bar)["factors"], ref.kronecker_vjp(w_bar, factors)["factors"], dtype, size)


def test_factors_of_several_dtypes_promote():
    op = iso.Kronecker([np.eye(2, dtype=np.float32), 1j * np.eye(2)])
    assert op.dtype == np.complex128
    grads, _ = op.apply_vjp(np.ones(4), np.ones(4))
    assert [g.dtype for g in grads["factors"]] == [np.float32, np.complex128]
    assert it.Kronecker([torch.eye(2), torch.eye(2, dtype=torch.complex64)]).dtype == torch.complex64
    with pytest.raises(TypeError, match="same precision"):
        it.Kronecker([torch.eye(2), torch.eye(2, dtype=torch.float64)])


@DTYPE
def test_random_ones_are_unitary(dtype, seed):
    op = iso.Kronecker.random(36, rng=seed, dtype=dtype)
    assert [f.shape for f in op.factors] == [(2, 2), (2, 2), (3, 3), (3, 3)]
    assert iso.orthogonality_error(op.matrix()) < 20
    assert it.Kronecker.random(7, dtype=torch.complex64).factors[0].shape == (7, 7)
