"""rotvec() of Cayley and Exponential, the inverse of from_rotvec; SciPy's `Rotation` beside it."""

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import isometry as iso
import isometry.torch as it
import reference as ref

ANGLES = [0.0, 1e-300, 1e-12, 1e-5, 0.3, 2.0, 3.0, 3.14]
each = pytest.mark.parametrize("name", ["Cayley", "Exponential"])


def vectors(seed, angles):
    axes = ref.normal(seed, len(angles), 3)
    return axes / np.linalg.norm(axes, axis=-1, keepdims=True) * np.array(angles)[:, None]


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_the_inverse(seed, name, dtype):
    """Relative to the angle, up to almost half a turn; both faces."""
    r = vectors(seed, ANGLES).astype(dtype)
    eps = np.finfo(dtype).eps
    found = getattr(iso, name).from_rotvec(r).rotvec()
    other = getattr(it, name).from_rotvec(torch.from_numpy(r)).rotvec().numpy()
    assert found.dtype == other.dtype == dtype
    for value in (found, other):
        assert (np.abs(value - r) <= 60 * eps * np.abs(r).max(-1, keepdims=True) + np.finfo(dtype).tiny).all()


def test_whole_turns_are_taken_off(seed):
    r = vectors(seed, [3.3, 5.0, 2 * np.pi, 7.0, 40.0])
    for found in (
        iso.Exponential.from_rotvec(r).rotvec(),
        it.Exponential.from_rotvec(torch.from_numpy(r)).rotvec().numpy(),
    ):
        assert np.allclose(found, Rotation.from_rotvec(r).as_rotvec(), atol=1e-13)


@each
def test_gradients(seed, name):
    r = torch.from_numpy(vectors(seed, [0.0, 1e-9, 0.5, 3.0])).requires_grad_()
    law = lambda r: getattr(it, name).from_rotvec(r).rotvec()
    assert torch.autograd.gradcheck(law, r) and torch.autograd.gradgradcheck(law, r)
    turned = torch.from_numpy(vectors(seed, [4.0])).requires_grad_()
    if name == "Exponential":
        assert torch.autograd.gradcheck(law, turned)


@pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])
def test_refusals(package):
    zeros = np.zeros if package is iso else torch.zeros
    complex_ = np.complex64 if package is iso else torch.complex64
    ones = np.ones if package is iso else torch.ones
    for kind in (package.Cayley, package.Exponential):
        with pytest.raises(ValueError, match="three dimensions, not of 4"):
            kind(zeros(6)).rotvec()
        with pytest.raises(TypeError, match="real operator"):
            kind(zeros(3, dtype=complex_)).rotvec()
    with pytest.raises(ValueError, match="signs"):
        package.Cayley(zeros(3), signs=ones(3)).rotvec()
