"""Specific properties of products of reflections (docs/math/householder.md), and their errors."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, is_complex, real_of
from tolerance import TIGHT, UNITARITY, close, eps, forward, gradient, identical

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
def test_one_dimension_is_a_sign(dtype):
    u = np.array([[3.0]], dtype)
    close(iso.Householder(u).matrix(), [[-1.0]], forward(dtype, 1))
    close(iso.Householder(np.repeat(u, 2, 1)).matrix(), [[1.0]], forward(dtype, 1))
    grads = iso.Householder(u).matrix_vjp(np.ones((1, 1), dtype))
    close(grads["vectors"], [[0.0]], gradient(dtype, 1), floor=1.0)


@DTYPE
def test_more_reflections_than_dimensions(dtype, seed):
    u = ref.normal(seed, 3, 40, dtype=dtype)
    close(iso.Householder(u).matrix(), ref.householder(u), forward(dtype, 40))
    assert iso.orthogonality_error(iso.Householder(u).matrix()) <= UNITARITY * 40 / 3


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


@DTYPE
def test_parallel_columns_cancel(dtype, seed):
    u = ref.normal(seed, 6, 1, dtype=dtype)
    scale = np.array([[2.0, -0.5]], dtype) * (1j if is_complex(dtype) else 1)
    pair = (u * scale).astype(dtype)
    close(iso.Householder(pair).matrix(), np.eye(6), forward(dtype, 6))
    x = ref.normal(seed, 4, 6, dtype=dtype)
    ct = x[::-1].copy()
    grads, _ = iso.Householder(pair).apply_vjp(x, ct)
    expected = ref.householder_vjp(ref.wide(ct).T @ ref.wide(x).conj(), pair)["vectors"]
    close(grads["vectors"], expected, gradient(dtype, 6), floor=1.0)


@DTYPE
def test_nearly_parallel_columns_are_harmless(dtype, seed):
    u = ref.normal(seed, 8, 1, dtype=dtype)
    close_by = (u + 4 * np.finfo(dtype).eps * ref.normal(seed, 8, 12, dtype=dtype)).astype(dtype)
    w = iso.Householder(close_by).matrix()
    assert iso.orthogonality_error(w) <= UNITARITY
    close(w, np.eye(8), 8 * forward(dtype, 12))


@DTYPE
def test_lengths_of_the_columns_do_not_matter(dtype, seed):
    """H(c u) = H(u); the gradient of a column scaled by c is divided by conj(c), and has no part along the column."""
    u, x, ct = (ref.normal(seed, 6, 4, dtype=dtype) for _ in range(3))
    reach = 1e120 if real_of(dtype) is np.float64 else 1e15
    scale = np.array([1 / reach, reach, -2.0, 3.0]).astype(dtype)
    plain, scaled = iso.Householder(u), iso.Householder(u * scale)
    close(scaled.matrix(), plain.matrix(), forward(dtype, 6))
    (g, _), (h, _) = plain.apply_vjp(x.T, ct.T), scaled.apply_vjp(x.T, ct.T)
    close(h["vectors"] * scale.conj(), g["vectors"], gradient(dtype, 6))
    along = np.real(u.conj() * g["vectors"]).sum(axis=0)
    close(along, np.zeros(4), gradient(dtype, 6), floor=np.linalg.norm(ct))


def test_sign_inside_the_interval_is_a_contraction():
    w = iso.Householder(np.zeros((3, 0)), sign=0.25).matrix()
    close(w, np.diag([1, 1, 0.25]), 0.0)


def test_a_python_number_takes_the_precision_of_the_arrays():
    assert iso.Householder(np.ones((3, 1), np.float32), sign=-1.0).dtype == np.float32
    assert iso.Householder(np.ones((3, 1), np.complex64), sign=1).dtype == np.complex64


def test_operators_cannot_be_changed():
    op = iso.Householder(np.ones((3, 1)))
    for name in ("vectors", "sign", "phases", "shape", "dtype"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(op, name, None)


@DTYPE
@pytest.mark.parametrize("n,m,rows", [(128, 16, 50), (97, 97, 3), (130, 20, 1), (64, 63, 129)])
def test_blocked_sizes(dtype, n, m, rows, seed):
    """Sizes on both sides of every block of the compact WY form."""
    u, x = ref.normal(seed, n, m, dtype=dtype), ref.normal(seed, rows, n, dtype=dtype)
    op, w = iso.Householder(u), ref.householder(u)
    close(op.matrix(), w, forward(dtype, m))
    close(op.apply(x), ref.wide(x) @ w.T, forward(dtype, m))
    close(op.apply_adjoint(x), ref.wide(x) @ w.conj(), forward(dtype, m))
    assert iso.orthogonality_error(op.matrix()) <= UNITARITY


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


def test_from_trapezoid_is_the_transition_of_section_4(seed):
    for n, m in ((5, 3), (4, 4), (1, 1), (3, 1)):
        u = ref.normal(seed, n, m)
        op = iso.Householder.from_trapezoid(u)
        s = None if m < n else (1.0 if u[-1, -1] > 0 else -1.0)
        close(op.matrix(), ref.householder(np.tril(u)[:, : min(m, n - 1)], s), forward(np.float64, n))
        identical(op.matrix(), iso.Householder.from_trapezoid(np.tril(u)).matrix(), "above the diagonal")
    soft = iso.Householder.from_trapezoid(np.array([[1.0, 0], [2, -0.25]]), sign="soft")
    assert float(soft.sign) == -0.25
    assert float(iso.Householder.from_trapezoid(np.array([[0.0]])).sign) == -1.0


def test_the_sign_of_the_trapezoid_passes_its_gradient_straight_through():
    u = torch.tensor([[1.0, 0.0], [2.0, 0.3]], dtype=torch.float64, requires_grad=True)
    ct = torch.tensor([[0.0, 0.0], [0.5, 2.0]], dtype=torch.float64)
    (it.Householder.from_trapezoid(u).matrix() * ct).sum().backward()
    expected = ref.householder_vjp(ct.numpy(), np.tril(u.detach().numpy())[:, :1], 1.0)
    assert u.grad[0, 1] == 0, "an entry above the diagonal has no gradient"
    close(u.grad[1, 1], expected["sign"], TIGHT)
    close(u.grad[:, 0], expected["vectors"][:, 0], TIGHT)


# ---------------------------------------------------------------- errors


def test_refusals_of_matrices():
    q = ref.haar(np.random.default_rng(1), 4)
    with pytest.raises(ValueError, match="nan|NaN|finite"):
        iso.Householder.from_matrix(np.where(np.eye(4) > 0, np.nan, q))
    for u in (np.ones((3, 4)), np.ones((3, 0)), np.ones(3)):
        with pytest.raises(ValueError, match="u"):
            iso.Householder.from_trapezoid(u)
    with pytest.raises(ValueError, match="sign"):
        iso.Householder.from_trapezoid(np.array([[1.0, 0], [2, 1.5]]), sign="soft")
    with pytest.raises(ValueError, match="sign"):
        iso.Householder.from_trapezoid(np.ones((4, 2)), sign="firm")
