"""Closed forms of real rotations of the plane and of space: Cayley and Exponential, on every path, at every angle."""

import time

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from closed_forms import drawn
from isometry import _core
from subprocesses import script

each = pytest.mark.parametrize("name", ["Cayley", "Exponential"])
sizes = pytest.mark.parametrize("n", [2, 3])


@pytest.mark.cpu
@pytest.mark.parametrize("path", _core.config()["simd_available"])
def test_every_path_at_every_angle(path):
    """Values, gradients, inverse maps and bits of members; the checks are in `closed_forms`."""
    script("import sys, closed_forms; closed_forms.check(sys.argv[1])", path, ISOMETRY_SIMD=path)


@pytest.mark.cpu
@pytest.mark.alone
@each
def test_any_angle_costs_the_same(name, seed, threads):  # noqa: ARG001  restores the budget
    """174 degrees took twelve times as long as 60 when such matrices were repaired one by one."""
    axes = ref.normal(seed, 50_000, 3)
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    x, times = ref.normal(seed, 50_000, 3), {}
    ops = {angle: getattr(iso, name).from_rotvec(np.deg2rad(angle) * axes) for angle in (60, 174)}
    iso.set_num_threads(1)
    for angle, op in [*ops.items()] * 8:
        start = time.process_time()
        op(x), op.matrix()
        times.setdefault(angle, []).append(time.process_time() - start)
    assert min(times[174]) < 2 * min(times[60])


@each
@sizes
def test_torch_has_the_same_values_and_derivatives_of_second_order(name, n, seed):
    """The kernels' values; gradients of gradients by the formula, at 0, near half a turn and beyond."""
    upper = drawn(seed, n, [0.0, 1e-9, 0.7, 2.5, np.pi], np.float64)
    x = ref.normal(seed, len(upper), n)
    law = getattr(it, name)
    u, v = torch.from_numpy(upper).requires_grad_(), torch.from_numpy(x).requires_grad_()
    assert (law(u)(v).detach().numpy() == getattr(iso, name)(upper)(x)).all()
    assert (law(u).matrix().detach().numpy() == getattr(iso, name)(upper).matrix()).all()
    assert torch.autograd.gradcheck(lambda u, v: law(u)(v), (u, v))
    assert torch.autograd.gradgradcheck(lambda u, v: law(u)(v), (u, v))
    assert torch.autograd.gradcheck(lambda u: law(u).matrix(), u)
    assert torch.autograd.gradgradcheck(lambda u: law(u).matrix(), u)
    back = law.from_matrix(law(u).matrix().detach())
    assert np.allclose(back.matrix().numpy(), law(u).matrix().detach().numpy(), atol=1e-14)


@sizes
def test_what_is_no_rotation_is_refused(n, seed):
    """By the first matrix at fault."""
    w = np.stack([ref.haar(seed, n) for _ in range(150)])
    w *= np.sign(np.linalg.det(w))[:, None, None] if n == 3 else 1
    w = w[np.linalg.det(w) > 0]
    late = len(w) - 2
    skewed = w.copy()
    skewed[late] += 0.1
    for law in (iso.Exponential, iso.Cayley):
        with pytest.raises(ValueError, match=rf"w must be orthogonal: max .W.H W - I. of matrix {late} is"):
            law.from_matrix(skewed)
        assert law.from_matrix(skewed, tol=1.0).shape == (n, n)
        with pytest.raises(ValueError, match="w must be orthogonal"):
            law.from_matrix(np.full((2, n, n), np.nan), check_finite=False)
        assert law.from_matrix(w[:0]).batch_shape == (0,)
    mirrored = w.copy()
    mirrored[late, 0] *= -1
    with pytest.raises(ValueError, match=rf"w must have determinant 1 .* of matrix {late} is -1"):
        iso.Exponential.from_matrix(mirrored)
    assert np.allclose(iso.Cayley.from_matrix(mirrored).matrix(), mirrored)
    half = np.diag([-1.0, -1.0, 1.0][:n])
    reflection = np.eye(n)[::-1] if n == 2 else np.eye(n)[[1, 0, 2]]
    for wrong, signs in ((half, np.ones(n)), (reflection, np.ones(n)), (np.eye(n), np.arange(n) * 2.0 % 4 - 1)):
        with pytest.raises(ValueError, match="signs do not fit: W D.-1 of matrix 1 has the eigenvalue -1"):
            iso.Cayley.from_matrix(np.stack([np.diag(signs), wrong]), signs=signs)
