"""The scale of procrustes: the sum of the singular values, its gradient W, and the derivative of that."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, is_complex
from test_procrustes import SIZES, conditioned
from tolerance import identical


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("size", SIZES[:-1], ids=str)
@pytest.mark.parametrize("special", [False, True], ids=["orthogonal", "rotation"])
def test_values(dtype, size, special, seed):
    if special and (size[0] != size[1] or is_complex(dtype)):
        return
    a = conditioned(seed, 2, 3, *size, dtype=dtype)
    w, scale = iso.linalg.procrustes(a, special=special, return_scale=True)
    identical(w, iso.linalg.procrustes(a, special=special))
    s = np.linalg.svd(ref.wide(a), compute_uv=False)
    if special:
        s[..., -1] *= np.sign(np.linalg.det(ref.wide(a)))
    assert scale.shape == (2, 3) and scale.dtype == a.real.dtype
    assert np.abs(scale - s.sum(-1)).max() < 50 * np.finfo(dtype).eps * max(size)
    t = torch.from_numpy(a).requires_grad_()
    other, found = it.linalg.procrustes(t, special=special, return_scale=True)
    assert torch.equal(other.detach(), torch.from_numpy(w))
    assert np.abs(found.detach().numpy() - scale).max() < 50 * np.finfo(dtype).eps * max(size)
    found.sum().backward()
    identical(t.grad.numpy(), w)
    identical(iso.linalg.procrustes(np.asfortranarray(a), special=special, return_scale=True)[1], scale)


def test_singular_zero_huge_and_empty(seed):
    a = conditioned(seed, 4, 3, 3, dtype=np.float64)
    a[1], a[2], a[3, :, 1] = 0, 2.0**600 * a[2], a[3, :, 0]
    scale = iso.linalg.procrustes(a, return_scale=True)[1]
    expected = np.linalg.svd(a, compute_uv=False).sum(-1)
    assert scale[1] == 0 and np.allclose(scale, expected, rtol=1e-13)
    a[0, 0, 0] = np.nan
    scale = iso.linalg.procrustes(a, return_scale=True, check_finite=False)[1]
    assert np.isnan(scale[0]) and np.allclose(scale[1:], expected[1:], rtol=1e-13)
    for shape in ((0, 3, 2), (2, 0, 3), (2, 3, 0)):
        assert iso.linalg.procrustes(np.zeros(shape), return_scale=True)[1].tolist() == [0.0] * shape[0]
        assert it.linalg.procrustes(torch.zeros(shape), return_scale=True)[1].tolist() == [0.0] * shape[0]
    assert iso.linalg.procrustes(np.eye(3), return_scale=True)[1] == 3


def test_the_similarity_between_points(seed):
    """Points turned, scaled and moved back by W and the scale."""
    p = seed.standard_normal((20, 3))
    w = iso.Householder.haar(3, rng=seed, special=True).matrix()
    q = 2.5 * p @ w.T
    found, scale = iso.linalg.procrustes(q.T @ p, special=True, return_scale=True)
    assert np.allclose(found, w) and np.isclose(scale / (p**2).sum(), 2.5)
