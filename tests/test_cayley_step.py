"""One Cayley step of both faces: the formula, the slope, unitarity, and its refusals."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES
from tolerance import UNITARITY, close, forward

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)


def textbook(w, g, rate):
    """(I + r/2 A)^{-1} (I - r/2 A) W, A = G W^H - W G^H."""
    w, g, i = ref.wide(w), ref.wide(g), np.eye(w.shape[-1])
    a = g @ w.conj().T - w @ g.conj().T
    return np.linalg.inv(i + rate / 2 * a) @ (i - rate / 2 * a) @ w


@DTYPE
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_both_faces_take_the_step(n, dtype, seed):
    w, g = ref.haar(seed, n, dtype), ref.normal(seed, n, n, dtype=dtype)
    for rate in (0.0, 0.1, 3.0):
        found = iso.cayley_step(w, g, rate)
        tensor = it.cayley_step(torch.from_numpy(w), torch.from_numpy(g), rate)
        bound = forward(dtype, n, 1 + rate * np.linalg.norm(g, 2))
        close(found, textbook(w, g, rate), bound)
        close(tensor.numpy(), textbook(w, g, rate), bound)
        assert found.dtype == dtype
        assert iso.orthogonality_error(found) < UNITARITY * (1 + rate)
    close(iso.cayley_step(w, np.zeros_like(g), 1.0), w, 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_the_loss_falls_at_the_stated_rate(dtype, seed):
    w, g = ref.haar(seed, 6, dtype), ref.normal(seed, 6, 6, dtype=dtype)
    a = g @ w.conj().T - w @ g.conj().T
    loss = lambda w: np.vdot(g, w).real
    slope = (loss(iso.cayley_step(w, g, 1e-6)) - loss(w)) / 1e-6
    assert slope == pytest.approx(-(np.linalg.norm(a) ** 2) / 2, rel=1e-4)


def test_stacks_and_real_gradients_of_complex_matrices(seed):
    w = np.stack([ref.haar(seed, 4, np.complex128) for _ in range(3)])
    g = ref.normal(seed, 3, 4, 4)
    found = iso.cayley_step(w, g, 0.2)
    for k in range(3):
        close(found[k], textbook(w[k], g[k], 0.2), 1e-13)
    close(it.cayley_step(torch.from_numpy(w), torch.from_numpy(g), 0.2).numpy(), found, 1e-13)


def test_a_step_is_differentiable():
    w = torch.eye(3, dtype=torch.float64, requires_grad=True)
    g = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w, g: it.cayley_step(w, g, 0.3), (w, g))


def test_rounding_adds_up_slowly(seed):
    """A thousand short steps in single precision."""
    w = ref.haar(seed, 12, np.float32)
    for _ in range(1000):
        w = iso.cayley_step(w, ref.normal(seed, 12, 12, dtype=np.float32), 5e-3)
    assert iso.orthogonality_error(w) < UNITARITY


@pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])
def test_what_is_refused(package):
    give = np.asarray if package is iso else torch.as_tensor
    w = give(np.eye(3))
    for rate in (-0.1, np.nan, np.inf):
        with pytest.raises(ValueError, match="^rate must be"):
            package.cayley_step(w, w, rate)
    with pytest.raises(TypeError, match="^rate must be a number"):
        package.cayley_step(w, w, "1")
    with pytest.raises(ValueError, match="^w must be square"):
        package.cayley_step(give(np.ones((3, 2))), give(np.ones((3, 2))), 0.1)
    with pytest.raises(ValueError, match="^gradient must have shape"):
        package.cayley_step(w, give(np.eye(2)), 0.1)
    with pytest.raises(TypeError, match="^gradient must be real"):
        package.cayley_step(w, give(np.eye(3) + 0j), 0.1)


def test_values_and_precisions_are_checked():
    with pytest.raises(ValueError, match="^gradient must be finite"):
        iso.cayley_step(np.eye(2), np.full((2, 2), np.nan), 0.1)
    assert np.isnan(iso.cayley_step(np.eye(2), np.full((2, 2), np.nan), 0.1, check_finite=False)).all()
    with pytest.raises(TypeError, match="same precision"):
        it.cayley_step(torch.eye(2), torch.eye(2, dtype=torch.float64), 0.1)
