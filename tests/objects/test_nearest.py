"""from_matrix(nearest=True): a noisy matrix is projected first; Householder.haar."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref

NAMES = ["Cayley", "Exponential", "Householder", "Mesh"]


@pytest.mark.parametrize("n", [1, 3, 11])
@pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", NAMES)
def test_a_noisy_matrix_is_projected(seed, name, complex_, n):
    """Onto what linalg.procrustes gives, for both faces; without it a tolerance refuses the noise."""
    dtype = np.complex128 if complex_ else np.float64
    w = np.stack([ref.haar(seed, n, dtype) for _ in range(2)])
    if name == "Exponential" and not complex_:
        w[..., 0] *= np.linalg.det(w)[:, None]
    noisy = w + 0.05 * ref.normal(seed, 2, n, n, dtype=dtype)
    special = name == "Exponential" and not complex_
    expected = iso.linalg.procrustes(noisy, special=special)
    found = getattr(iso, name).from_matrix(noisy, nearest=True).matrix()
    assert np.allclose(found, expected, atol=1e-13)
    other = getattr(it, name).from_matrix(torch.from_numpy(noisy), nearest=True).matrix()
    assert np.allclose(other.numpy(), expected, atol=1e-13)
    for package, given in ((iso, noisy), (it, torch.from_numpy(noisy))):
        with pytest.raises(ValueError, match=r"^w .*W\^H W - I.*; nearest=True, or procrustes, takes the nearest"):
            getattr(package, name).from_matrix(given)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])
def test_haar(package, dtype):
    """Both determinants; the mean of |w_ij|^2 is 1 / n and that of |trace|^2 is 1, unlike those of `random`; special
    ones have determinant 1, and the mean of W is still zero."""
    make = package.Householder.haar
    given = {"dtype": dtype if package is iso else getattr(torch, dtype)}
    given |= {"rng": 3} if package is iso else {"generator": torch.Generator().manual_seed(3)}
    for special in (False, True):
        for n in (1, 2, 3):
            w = np.asarray(make(n, batch_shape=(40, 50), special=special, **given).matrix()).reshape(-1, n, n)
            eps = np.finfo(dtype).eps
            assert w.dtype == dtype and abs(w @ np.swapaxes(w, 1, 2).conj() - np.eye(n)).max() < 20 * eps
            assert abs((np.abs(w) ** 2).mean(0) * n - 1).max() < 0.1
            determinants = np.linalg.det(w)
            if special:
                assert abs(determinants - 1).max() < 40 * eps
                assert n == 1 or abs(w.mean(0)).max() < 0.1
            else:
                assert abs(determinants.mean()) < 0.1
                assert abs((np.abs(np.trace(w, axis1=1, axis2=2)) ** 2).mean() - 1) < 0.15
            assert len(np.unique(w[:, 0, 0])) > 1000 or n == 1
    if package is iso:
        one, stack = (make(4, rng=7, dtype=dtype, **more).matrix() for more in ({}, {"batch_shape": (2,)}))
        assert np.array_equal(one, stack[0])
    assert make(3, batch_shape=(0, 2), **given).batch_shape == (0, 2)
    assert make(1, **given).shape == (1, 1)
    for n, batch, named in ((3, (-1,), "batch_shape"), (0, (), "^n ")):
        with pytest.raises(ValueError, match=named):
            make(n, batch_shape=batch)
    with pytest.raises(TypeError, match="^special "):
        make(3, special=1)
