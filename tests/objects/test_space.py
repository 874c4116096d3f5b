"""Rotations of the plane and of space by Cayley and Exponential, beside SciPy's."""

import time

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import isometry as iso
import isometry.torch as it
import reference as ref
from closed_forms import drawn
from isometry import _core
from registry.functions.operators import HALF_TURNS
from subprocesses import script
from tolerance import close, forward

REAL = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
each = pytest.mark.parametrize("name", ["Cayley", "Exponential"])
TINY = 1e-30
# no rotation, a little, exact and near half turns, components that vanish beside others
SPECIAL = [
    *([0, 0, 0, 1], [0, 0, 0, -2], [1e-9, 0, 0, 1], [0, 0, TINY, 1], [0.5, 0.5, -0.5, 0.5], [1e-3, 0, 1e-4, -1]),
    *([1, 0, 0, 1e-6], [0, 1, -1, -1e-6], [0.3, 0.4, 0, 1e-3], [TINY, TINY, 0, TINY]),
]


def faces(name):
    return ((getattr(iso, name), np.asarray, np.asarray), (getattr(it, name), torch.from_numpy, lambda t: t.numpy()))


def quaternions(rng, name, dtype):
    some = [
        rng.standard_normal((40, 4)),
        np.array(SPECIAL),
        *([np.array(HALF_TURNS["quat"])] if name == "Exponential" else []),
    ]
    return np.concatenate(some).astype(dtype)


@each
@REAL
def test_scipy_agrees(name, dtype, seed):
    """The same rotation for q, -q, any length; quat() has length 1 and w >= 0."""
    q = quaternions(seed, name, dtype)
    expected = Rotation.from_quat(q.astype(float)).as_matrix()
    bound = forward(dtype, 3, 4)
    for kind, give, take in faces(name):
        for factor in (1, -1, 2.0**40, -(2.0**-40)):
            op = kind.from_quat(give((q * factor).astype(dtype)))
            assert op.shape == (3, 3) and op.batch_shape == q.shape[:1]
            close(take(op.matrix()), expected, bound)
        found = take(op.quat())
        assert found.dtype == dtype and (found[:, 3] >= 0).all()
        close(np.linalg.norm(found, axis=-1), np.ones(len(q)), bound)
        close(Rotation.from_quat(found.astype(float)).as_matrix(), expected, bound)
        first = [3, 0, 1, 2]
        assert np.array_equal(take(op.quat(scalar_first=True)), found[:, first])
        again = kind.from_quat(give(np.ascontiguousarray(q[:, first])), scalar_first=True)
        assert np.array_equal(take(again.matrix()), take(kind.from_quat(give(q)).matrix()))


@each
@REAL
def test_any_parameters(name, dtype, seed):
    """quat() of operators that no quaternion made: whole turns, huge angles, the ends of the exponent."""
    upper = seed.standard_normal((60, 3)) * np.repeat(10.0 ** np.array([-30, -8, -2, 0, 1, 2]), 10)[:, None]
    upper = np.concatenate((upper, np.zeros((1, 3)))).astype(dtype)
    for kind, give, take in faces(name):
        op = kind(give(upper))
        found = take(op.quat()).astype(float)
        assert (found[:, 3] >= 0).all()
        close(Rotation.from_quat(found).as_matrix(), take(op.matrix()), forward(dtype, 3, 300))
    huge = np.array([[1e30, -1e30, 1e30]], dtype) if name == "Cayley" else np.zeros((0, 3), dtype)
    for kind, give, take in faces(name):
        found = take(kind(give(huge)).quat())
        close(np.abs(found), np.full((len(huge), 4), 3**-0.5) * [1, 1, 1, 0], forward(dtype, 3, 1))


@each
@REAL
def test_gradients_are_finite_wherever_w_exists(name, dtype):
    rows = [*SPECIAL, *(HALF_TURNS["quat"] if name == "Exponential" else [[1, 0, 0, 1e-30], [0.6, 0, 0.8, -1e-20]])]
    for row in rows:
        q = torch.from_numpy(np.array(row, dtype)).requires_grad_()
        op = getattr(it, name).from_quat(q)
        for result in (op.matrix().flatten(), op.quat()):
            for i in range(len(result)):
                (g,) = torch.autograd.grad(result[i], q, retain_graph=True)
                assert torch.isfinite(g).all(), (row, i)


def rotation(q):
    """W of a quaternion, in torch operations."""
    q = q / torch.linalg.vector_norm(q, dim=-1, keepdim=True)
    x, y, z, w = q.unbind(-1)
    rows = [
        *(1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        *(2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        *(2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    ]
    return torch.stack(rows, -1).unflatten(-1, (3, 3))


@each
def test_derivatives(name):
    """Those of the formula, at every special quaternion of length near 1; of quat() against differences."""
    rows = [row for row in SPECIAL if max(map(abs, row)) > TINY] + (HALF_TURNS["quat"] if name == "Exponential" else [])
    q = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    ct = torch.randn(len(rows), 3, 3, dtype=torch.float64)
    one, two = (
        torch.autograd.grad((w * ct).sum(), q)[0] for w in (getattr(it, name).from_quat(q).matrix(), rotation(q))
    )
    torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-8)
    some = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    kind = getattr(it, name)
    assert torch.autograd.gradcheck(lambda q: kind.from_quat(q).matrix(), (some,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda q: kind.from_quat(q).matrix(), (some,))
    for upper in (torch.randn(4, 3), torch.zeros(2, 3), 1e-5 * torch.randn(2, 3)):
        u = upper.double().requires_grad_()
        assert torch.autograd.gradcheck(lambda u: kind(u).quat(), (u,), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(lambda u: kind(u).quat(), (u,))


@each
@pytest.mark.parametrize("form", ["quat", "rotvec"])
def test_operators_that_are_no_rotations_of_space(name, form):
    for kind, give, _ in faces(name):
        with pytest.raises(ValueError, match=f"^{form} needs a rotation of three dimensions, not of 4"):
            getattr(kind(give(np.ones(6))), form)()
        with pytest.raises(TypeError, match=f"^{form} needs a real operator"):
            getattr(kind(give(np.ones(3) + 0j)), form)()
        if name == "Cayley":
            with pytest.raises(ValueError, match=f"^{form} needs a rotation: signs"):
                getattr(kind(give(np.ones(3)), signs=give(np.ones(3))), form)()
        empty = getattr(kind, f"from_{form}")(give(np.ones((0, 4 if form == "quat" else 3))))
        assert getattr(empty, form)().shape[0] == 0


# ---------------------------------------------------------------- rotation vectors


@each
@REAL
def test_scipy_agrees_on_rotation_vectors(name, dtype, seed):
    """For short and long vectors, zero, and stacks."""
    r = seed.standard_normal((4, 50, 3)) * np.array([1e-9, 1e-3, 1.0, 4.0])[:, None, None]
    r = np.concatenate((r, np.zeros((1, 50, 3)))).astype(dtype)
    angle = np.linalg.norm(r, axis=-1)
    steep = 1 if name == "Exponential" else 1 / np.abs(np.cos(angle / 2)).min()
    expected = Rotation.from_rotvec(r.reshape(-1, 3).astype(float)).as_matrix().reshape(5, 50, 3, 3)
    for kind, give, take in faces(name):
        op = kind.from_rotvec(give(r))
        w = take(op.matrix())
        assert w.dtype == dtype and op.batch_shape == (5, 50)
        close(w, expected, forward(dtype, 3, angle.max() * steep))


def turns(seed, angles):
    axes = seed.standard_normal((len(angles), 3))
    return axes / np.linalg.norm(axes, axis=-1, keepdims=True) * np.array(angles)[:, None]


@each
@REAL
def test_rotation_vectors_come_back(seed, name, dtype):
    """Relative to the angle, up to almost half a turn; whole turns are taken off."""
    r = turns(seed, [0.0, 1e-300, 1e-12, 1e-5, 0.3, 2.0, 3.0, 3.14]).astype(dtype)
    far = turns(seed, [3.3, 5.0, 2 * np.pi, 7.0, 40.0])
    eps, tiny = np.finfo(dtype).eps, np.finfo(dtype).tiny
    for kind, give, take in faces(name):
        found = take(kind.from_rotvec(give(r)).rotvec())
        assert found.dtype == dtype
        assert (np.abs(found - r) <= 60 * eps * np.abs(r).max(-1, keepdims=True) + tiny).all()
        if name == "Exponential":
            found = take(kind.from_rotvec(give(far)).rotvec())
            assert np.allclose(found, Rotation.from_rotvec(far).as_rotvec(), atol=1e-13)


@each
def test_derivatives_of_rotation_vectors(seed, name):
    """Also at zero, and of the exponential beyond half a turn."""
    r = torch.from_numpy(turns(seed, [0.0, 1e-9, 0.5, 3.0])).requires_grad_()
    for law in (lambda r: kind.from_rotvec(r).matrix(), lambda r: kind.from_rotvec(r).rotvec()):
        kind = getattr(it, name)
        assert torch.autograd.gradcheck(law, r) and torch.autograd.gradgradcheck(law, r)
        if name == "Exponential":
            assert torch.autograd.gradcheck(law, torch.from_numpy(turns(seed, [4.0])).requires_grad_())


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
