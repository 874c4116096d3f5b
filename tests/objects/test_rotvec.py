"""Rotations of R^3 by rotation vectors: `from_rotvec` of the exponential and of the Cayley transform."""

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import isometry as iso
import isometry.torch as it
from tolerance import close, forward

REAL = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
KIND = pytest.mark.parametrize("kind", ["Exponential", "Cayley"])


def both(kind, r):
    """The matrix of each face."""
    return (
        getattr(iso, kind).from_rotvec(r).matrix(),
        getattr(it, kind).from_rotvec(torch.from_numpy(np.asarray(r))).matrix().numpy(),
    )


@KIND
@REAL
def test_scipy_agrees(kind, dtype, seed):
    """For short and long vectors, zero, and stacks."""
    r = seed.standard_normal((4, 50, 3)) * np.array([1e-9, 1e-3, 1.0, 4.0])[:, None, None]
    r = np.concatenate((r, np.zeros((1, 50, 3)))).astype(dtype)
    angle = np.linalg.norm(r, axis=-1)
    steep = 1 if kind == "Exponential" else 1 / np.abs(np.cos(angle / 2)).min()
    expected = Rotation.from_rotvec(r.reshape(-1, 3).astype(float)).as_matrix().reshape(5, 50, 3, 3)
    for w in both(kind, r):
        assert w.dtype == dtype
        close(w, expected, forward(dtype, 3, angle.max() * steep))
    for w in both(kind, r[2, 0]):
        close(w, expected[2, 0], forward(dtype, 3, angle.max() * steep))


@REAL
def test_the_rodrigues_parameters_of_half_a_turn_are_refused(dtype):
    for turns in (1, 3, -5):
        r = np.array([[0.0, 0.0, 1.0], [0, turns * np.pi, 0]], dtype)
        for package, give in ((iso, np.asarray), (it, torch.from_numpy)):
            with pytest.raises(ValueError, match="^rotvec must not turn by pi"):
                package.Cayley.from_rotvec(give(r))
        for w in both("Exponential", r):
            close(w[1], np.diag([-1, 1, -1]), forward(dtype, 3, 5 * np.pi))
    for w in both("Cayley", np.array([0, 2 * np.pi, 0], dtype)):
        close(w, np.eye(3), forward(dtype, 3, 2 * np.pi))


@KIND
def test_every_derivative(kind):
    """Also at zero."""
    for r in (torch.randn(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)):
        f = lambda r: getattr(it, kind).from_rotvec(r).matrix()
        assert torch.autograd.gradcheck(f, (r.requires_grad_(),))
        assert torch.autograd.gradgradcheck(f, (r,))


@KIND
@pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])
def test_what_is_refused(kind, package):
    build = getattr(package, kind).from_rotvec
    give = np.asarray if package is iso else torch.as_tensor
    with pytest.raises(ValueError, match=r"^rotvec must have shape \(\*, 3\)"):
        build(give(np.ones(4)))
    with pytest.raises(ValueError, match=r"^rotvec must have shape \(\*, 3\)"):
        build(give(np.array(1.0)))
    with pytest.raises(TypeError, match="^rotvec must be real"):
        build(give(np.ones(3) + 0j))
    if package is iso:
        with pytest.raises(ValueError, match="^rotvec must be finite"):
            build([np.nan, 0, 0])


def test_a_square_array_is_a_stack():
    """Three rotations of R^3, and the text says so."""
    for package, zeros in ((iso, np.zeros), (it, torch.zeros)):
        for op in (package.Cayley(zeros((3, 3))), package.Exponential(zeros((3, 3)))):
            assert "n=3, batch_shape=(3,)" in repr(op)
            assert "three rotations of R^3" in " ".join(type(op).__doc__.split())
