"""linalg.qr in both faces: products, LAPACK's signs, every shape and mode, zeros and copies."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES
from tolerance import identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
MODES = ("reduced", "complete")
SHAPES = ((1, 1), (5, 3), (3, 5), (4, 4), (2, 3, 6, 4), (0, 4, 3), (3, 0), (0, 3), (0, 0), (2, 40, 37), (33, 70))


def cases(rng, shape, dtype):
    """Dense matrices, and those with columns that are zero, copies, or multiples of a unit vector."""
    a = ref.normal(rng, *shape, dtype=dtype)
    yield a
    yield np.zeros_like(a)
    if min(shape[-2:]) > 1:
        b = a.copy()
        b[..., 0] = 0
        b[..., -1] = b[..., 1]
        yield b
        yield np.triu(a)
        yield np.asfortranarray(a)[..., ::-1]
        yield np.broadcast_to(a[..., :1], a.shape)


@DTYPE
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_values(dtype, shape, mode, seed):
    for a in cases(seed, shape, dtype):
        found = iso.linalg.qr(a, mode)
        q, r = found
        p, s = np.linalg.qr(a, mode)
        assert q.shape == p.shape and r.shape == s.shape and q.dtype == r.dtype == a.dtype
        assert found.Q is q and found.R is r
        bound = 20 * np.finfo(dtype).eps * max(*shape[-2:], 1)
        assert np.abs(q @ r - a).max(initial=0) <= bound * max(1, np.abs(a).max(initial=0))
        assert np.abs(np.swapaxes(q, -1, -2).conj() @ q - np.eye(q.shape[-1])).max(initial=0) <= bound
        assert not np.tril(r, -1).any()
        factors, _ = iso.linalg.geqrf(a)
        identical(np.diagonal(r, axis1=-2, axis2=-1), np.diagonal(factors, axis1=-2, axis2=-1))
        other = it.linalg.qr(torch.from_numpy(np.array(a)), mode)
        for one, two in zip(other, found, strict=True):
            identical(one.numpy(), two)
        assert other.Q is other[0] and other.R is other[1]


@DTYPE
def test_signs_are_those_of_numpy(dtype, seed):
    """Both are LAPACK's."""
    a = ref.normal(seed, 3, 6, 4, dtype=dtype)
    for mode in MODES:
        for one, two in zip(iso.linalg.qr(a, mode), np.linalg.qr(a, mode), strict=True):
            assert np.abs(one - two).max() < 1e3 * np.finfo(dtype).eps


def test_a_tall_matrix_has_no_complete_derivatives():
    a = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="^A must have at least as many columns as rows with mode='complete'"):
        it.linalg.qr(a, "complete")
    with torch.no_grad():
        it.linalg.qr(a, "complete")
    it.linalg.qr(a.detach(), "complete")


def test_tensors_for_the_results():
    x = torch.randn(5, 4, dtype=torch.float64)
    for mode in MODES:
        out = torch.empty(0, dtype=x.dtype), torch.empty(0, dtype=x.dtype)
        found = it.linalg.qr(x, mode, out=out)
        assert found.Q is out[0] and torch.equal(out[1], it.linalg.qr(x, mode)[1])
    with pytest.raises(RuntimeError, match="^out must be None"):
        it.linalg.qr(torch.ones(2, 2, requires_grad=True), out=(torch.empty(0), torch.empty(0)))
