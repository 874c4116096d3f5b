"""Specific properties of products of reflections (docs/math/householder.md)."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, is_complex
from tolerance import TIGHT, close, eps, forward, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)


# ---------------------------------------------------------------- edge sizes and special directions


@DTYPE
def test_no_reflections_give_the_last_factor(dtype, seed):
    x = ref.normal(seed, 3, 5, dtype=dtype)
    identical(iso.Householder(np.zeros((5, 0), dtype)).apply(x), x)
    identical(iso.Householder(np.zeros((5, 0), dtype)).matrix(), np.eye(5, dtype=dtype))
    flipped = x * np.array([1, 1, 1, 1, -1], dtype)
    identical(iso.Householder(np.zeros((5, 0), dtype), sign=-1.0).apply(x), flipped)
    grads, x_bar = iso.Householder(np.zeros((5, 0), dtype)).apply_vjp(x, x)
    assert grads["vectors"].shape == (5, 0)
    identical(x_bar, x)


@DTYPE
@pytest.mark.parametrize("rows", [3, 16])
def test_columns_that_become_zero_after_the_check_stay_inside_the_arrays(dtype, rows, seed):
    """Writing to the array of an operator may invalidate it: the result is then not finite, without memory errors."""
    u = ref.normal(seed, 2, 100, dtype=dtype)
    op = iso.Householder(u)
    u[...] = np.tril(u)
    x = ref.normal(seed, rows, 2, dtype=dtype)
    with np.errstate(all="ignore"):
        for out in (op.apply(x), op.apply_adjoint(x), op.matrix(), op.apply_vjp(x, x)[1]):
            assert not np.isfinite(out).all()


def test_a_python_number_takes_the_precision_of_the_arrays():
    assert iso.Householder(np.ones((3, 1), np.float32), sign=-1.0).dtype == np.float32
    assert iso.Householder(np.ones((3, 1), np.complex64), sign=1).dtype == np.complex64


# ---------------------------------------------------------------- random and inverse maps


@DTYPE
def test_random_is_trapezoidal_with_unit_columns(dtype):
    full, thin = iso.Householder.random(7, rng=1, dtype=dtype), iso.Householder.random(7, 3, rng=1, dtype=dtype)
    for op, m in ((full, 6), (thin, 3)):
        assert op.vectors.shape == (7, m)
        assert op.dtype == dtype
        identical(op.vectors, np.tril(op.vectors))
        close(np.linalg.norm(op.vectors, axis=0), np.ones(m), forward(dtype, 7))
    assert thin.sign is None
    assert thin.phases is None
    if is_complex(dtype):
        assert full.phases.shape == (7,)
        assert np.all((full.phases >= -np.pi * (1 + eps(dtype))) & (full.phases <= np.pi * (1 + eps(dtype))))
    else:
        assert np.all(full.sign == 1)


def test_the_sign_of_the_trapezoid_passes_its_gradient_straight_through():
    u = torch.tensor([[1.0, 0.0], [2.0, 0.3]], dtype=torch.float64, requires_grad=True)
    ct = torch.tensor([[0.0, 0.0], [0.5, 2.0]], dtype=torch.float64)
    (it.Householder.from_trapezoid(u).matrix() * ct).sum().backward()
    expected = ref.householder_vjp(ct.numpy(), np.tril(u.detach().numpy())[:, :1], 1.0)
    assert u.grad[0, 1] == 0, "an entry above the diagonal has no gradient"
    close(u.grad[1, 1], expected["sign"], TIGHT)
    close(u.grad[:, 0], expected["vectors"][:, 0], TIGHT)
