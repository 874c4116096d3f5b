"""Quaternions of rotations of space: from_quat and quat of Cayley and Exponential, beside SciPy's."""

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import isometry as iso
import isometry.torch as it
from tolerance import close, forward

REAL = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
each = pytest.mark.parametrize("name", ["Cayley", "Exponential"])
HALF_TURNS = [[1.0, 0, 0, 0], [0, 0.6, -0.8, 0], [-3.0, 0, 0, -0.0]]
TINY = 1e-30
# no rotation, a little, exact and near half turns, components that vanish beside others
SPECIAL = [
    *([0, 0, 0, 1], [0, 0, 0, -2], [1e-9, 0, 0, 1], [0, 0, TINY, 1], [0.5, 0.5, -0.5, 0.5], [1e-3, 0, 1e-4, -1]),
    *([1, 0, 0, 1e-6], [0, 1, -1, -1e-6], [0.3, 0.4, 0, 1e-3], [TINY, TINY, 0, TINY]),
]


def faces(name):
    return ((getattr(iso, name), np.asarray, np.asarray), (getattr(it, name), torch.from_numpy, lambda t: t.numpy()))


def quaternions(rng, name, dtype):
    some = [rng.standard_normal((40, 4)), np.array(SPECIAL), *([np.array(HALF_TURNS)] if name == "Exponential" else [])]
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
    rows = [*SPECIAL, *(HALF_TURNS if name == "Exponential" else [[1, 0, 0, 1e-30], [0.6, 0, 0.8, -1e-20]])]
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
    rows = [row for row in SPECIAL if max(map(abs, row)) > TINY] + (HALF_TURNS if name == "Exponential" else [])
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
def test_modes_of_torch(name):
    kind, q = getattr(it, name), torch.randn(5, 4, dtype=torch.float64)
    call = lambda q: kind.from_quat(q).quat()
    for found in (torch.func.vmap(call)(q), torch.compile(call, fullgraph=True)(q)):
        torch.testing.assert_close(found, call(q), rtol=1e-13, atol=1e-13)


@each
def test_what_is_refused(name):
    for kind, give, _ in faces(name):
        for wrong in (np.ones((2, 3)), np.ones(()), np.array([[0.0, 0, 0, 0], [0, 0, 0, 1]])):
            with pytest.raises(ValueError, match="^quat must"):
                kind.from_quat(give(wrong))
        with pytest.raises(TypeError, match="^quat must"):
            kind.from_quat(give(np.ones(4) + 0j))
        with pytest.raises(TypeError, match="^scalar_first must"):
            kind.from_quat(give(np.ones(4)), scalar_first=1)
        with pytest.raises(ValueError, match="^quat needs a rotation of three dimensions, not of 4"):
            kind(give(np.ones(6))).quat()
        with pytest.raises(TypeError, match="^quat needs a real operator"):
            kind(give(np.ones(3) + 0j)).quat()
        if name == "Cayley":
            with pytest.raises(ValueError, match="^quat needs a rotation: signs"):
                kind(give(np.ones(3)), signs=give(np.ones(3))).quat()
            for half in HALF_TURNS:
                with pytest.raises(ValueError, match="^quat must not turn by pi"):
                    kind.from_quat(give(np.array(half)))
    with pytest.raises(ValueError, match="^quat must"):
        getattr(iso, name).from_quat([np.nan, 0, 0, 1])
    assert np.isnan(getattr(iso, name).from_quat([np.nan, 0, 0, 1], check_finite=False).upper).any()
    assert getattr(iso, name).from_quat(np.ones((0, 4))).quat().shape == (0, 4)
