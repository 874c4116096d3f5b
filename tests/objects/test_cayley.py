"""Specific properties of the scaled Cayley transform (docs/math/cayley.md), large ||A||, errors."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES
from tolerance import UNITARITY, close, eps, forward, gradient, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)


def packed(a):
    return a[np.triu_indices(len(a), 1)]


# ---------------------------------------------------------------- large ||A||


def dense_skew(rng, n, norm, dtype):
    a = ref.skew(ref.normal(rng, n * (n - 1) // 2, dtype=np.result_type(dtype, np.float64)))
    return a * (norm / np.linalg.norm(a, 2))


def dominant_row(rng, n, norm, dtype):
    """The norm is concentrated in one row and column: the hard case for elimination without pivoting."""
    a = dense_skew(rng, n, 0.5, dtype)
    row = ref.normal(rng, n, dtype=a.dtype)
    row[0] = 0
    a[0], a[:, 0] = row, -row.conj()
    a[0] *= norm / np.linalg.norm(row)
    a[:, 0] *= norm / np.linalg.norm(row)
    return a


def late_row(rng, n, norm, dtype):
    """The dominant row comes last, after everything else is eliminated."""
    return np.flip(dominant_row(rng, n, norm, dtype), (0, 1))


LARGE = pytest.mark.parametrize("shape", [dense_skew, dominant_row, late_row], ids=lambda f: f.__name__)
NORM = pytest.mark.parametrize("norm", [1.0, 4.9, 5.1, 10.0, 29.0, 31.0, 100.0, 1000.0])


@DTYPE
@LARGE
@NORM
def test_every_norm(dtype, shape, norm, seed):
    """e(W) <= 20, alone and in a stack; W and its gradient as close to the exact ones as cond(I + A) allows."""
    for n in (2, 3, 5, 16, 33, 64, 100):
        upper = np.stack([packed(shape(seed, n, norm, dtype)) for _ in range(3)]).astype(dtype)
        for given in (upper[0], upper):
            errors = iso.orthogonality_error(iso.Cayley(given).matrix())
            assert np.all(errors <= UNITARITY), f"n = {n}: e(W) = {np.max(errors):.3g}"
        condition = np.linalg.cond(np.eye(n) + ref.skew(upper[0]))
        op = iso.Cayley(upper[0])
        close(op.matrix(), ref.cayley(upper[0]), forward(dtype, n, condition), f"n = {n}")
        if n < 64:
            ct = ref.normal(seed, n, n, dtype=dtype)
            expected = ref.cayley_vjp(ct, upper[0])["upper"]
            steep = gradient(dtype, n, condition)
            close(op.matrix_vjp(ct)["upper"], expected, steep, f"gradient, n = {n}", floor=np.linalg.norm(ct) / 30)


# ---------------------------------------------------------------- errors


def test_refusals_of_matrices(seed):
    q = ref.haar(seed, 4)
    with pytest.raises(ValueError, match="signs|eigenvalue"):
        iso.Cayley.from_matrix(-np.eye(3), signs=np.ones(3))
    with pytest.raises(ValueError, match="phases|eigenvalue"):
        iso.Cayley.from_matrix(-np.eye(3) + 0j, phases=np.zeros(3))
    with pytest.raises(ValueError, match="signs"):
        iso.Cayley.from_matrix(q, signs=np.array([1, 1, 1, 3.0]))


# ---------------------------------------------------------------- one rule for both faces

FACES = pytest.mark.parametrize("api,array", [(iso, np.asarray), (it, torch.as_tensor)], ids=["numpy", "torch"])


@FACES
def test_skew_by_the_measure_of_each_matrix(api, array):
    """The defect is relative to the largest entry of its own matrix, independent of others in the stack."""
    good = np.array([[0.0, 1.0], [-1.0, 0.0]])
    limit = np.sqrt(eps(np.float64))
    for factor in (0.9, 1.1):
        near = good + np.array([[0.0, 0.0], [factor * limit, 0.0]])
        for a in (near, np.stack([1e12 * good, near])):
            if factor < 1:
                api.Cayley.from_skew(array(a))
            else:
                with pytest.raises(ValueError, match="a must be skew"):
                    api.Cayley.from_skew(array(a))
    assert tuple(api.Cayley.from_skew(array(np.zeros((0, 2, 2)))).upper.shape) == (0, 1)
    for wrong in (np.ones((3, 3)), np.zeros((3, 2))):
        with pytest.raises(ValueError, match="^a must"):
            api.Cayley.from_skew(array(wrong))


@FACES
def test_from_matrix_with_a_last_factor_of_the_other_field(api, array, seed):
    """A real matrix with phases, a complex one with signs, and last factors with a separate batch."""
    q, n = ref.haar(seed, 4), 4
    signs, phases = np.array([1.0, np.linalg.det(q), 1, 1]).round(), seed.uniform(0, 6, (2, n))
    for w, keywords, batch in (
        (q, {"phases": phases}, (2,)),
        (q + 0j, {"signs": signs}, ()),
        (q, {"signs": signs}, ()),
        (np.stack([q, q]), {"signs": signs}, (2,)),
        (np.stack([q, q]) + 0j, {"phases": phases[:1]}, (2,)),
    ):
        op = api.Cayley.from_matrix(array(w), **{k: array(v) for k, v in keywords.items()})
        assert tuple(op.batch_shape) == batch
        (name, given), (other,) = *keywords.items(), {"signs", "phases"} - set(keywords)
        identical(np.asarray(getattr(op, name)), given)
        assert getattr(op, other) is None
        close(np.asarray(op.matrix()), np.broadcast_to(w, (*batch, n, n)), 1e-10)
    with pytest.raises(ValueError, match="signs and phases"):
        api.Cayley.from_matrix(array(q), array(signs), array(phases[0]))
    with pytest.raises(ValueError, match="w, signs"):
        api.Cayley.from_matrix(array(np.stack([q] * 3)), array(np.ones((2, n))))


def test_signs_that_are_not_numbers_pass_the_torch_face():
    signs = torch.tensor([1.0, torch.nan])
    assert it.Cayley(torch.ones(1), signs=signs).matrix().isnan().any()
    with pytest.raises(ValueError, match="signs"):
        it.Cayley(torch.ones(1), signs=torch.tensor([torch.nan, 0.5]))
