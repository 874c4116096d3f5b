"""Angles of a mesh in the convention of Clements et al. (2016), the pairs they turn, and meshes without layers."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from tolerance import TIGHT, close

FACE = pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])
FIRST = pytest.mark.parametrize("first", ["left", "right"])
SIZES = pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])


def given(package, a):
    return a if package is iso else torch.from_numpy(a)


def clements(theta, phi, phases, pairs):
    """diag(e^{i phases}) T_1 T_2 ..., each T by equation (1) of the paper."""
    w = np.diag(np.exp(1j * phases))
    for t, p, (i, j) in zip(theta, phi, pairs, strict=True):
        block = np.eye(len(phases), dtype=complex)
        block[i, i], block[i, j] = np.exp(1j * p) * np.cos(t), -np.sin(t)
        block[j, i], block[j, j] = np.exp(1j * p) * np.sin(t), np.cos(t)
        w = w @ block
    return w


def angles(seed, n, batch=()):
    return [ref.normal(seed, *batch, k) * 3 for k in (n * (n - 1) // 2,) * 2 + (n,)]


@SIZES
@FIRST
@FACE
def test_from_clements(seed, n, first, package):
    own = angles(seed, n, (2,))
    op = package.Mesh.from_clements(*[given(package, a) for a in own], n=n, first=first)
    pairs = [pair for layer in ref.mesh_pairs(n, n, first=first) for pair in layer]
    assert op.first == first and op.layers == n
    for k in range(2):
        close(np.asarray(op.matrix())[k], clements(*[a[k] for a in own], pairs), TIGHT)
    for found, a in zip(op.clements(), own, strict=True):
        close(np.asarray(found), a, TIGHT)


@FIRST
@FACE
@pytest.mark.parametrize("last", ["phases", "signs", None])
@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize(("n", "layers"), [(1, 2), (2, 1), (4, 7), (5, 2), (6, 6)])
def test_clements_of_any_brick_mesh(seed, n, layers, first, package, last, turned):
    """With and without phi, phases and signs; the batch shapes of the arguments are broadcast."""
    count = len([pair for layer in ref.mesh_pairs(n, layers, first=first) for pair in layer])
    own = {"theta": ref.normal(seed, 2, 1, count)}
    own |= {"phi": ref.normal(seed, 3, count)} if turned else {}
    own |= {"phases": ref.normal(seed, n)} if last == "phases" else {}
    own |= {"signs": np.where(np.arange(n) % 3, 1.0, -1.0)} if last == "signs" else {}
    op = package.Mesh(**{k: given(package, a) for k, a in own.items()}, n=n, layers=layers, first=first)
    found = [np.asarray(a) for a in op.clements()]
    batch = (2, 3) if turned else (2, 1)
    assert [a.shape for a in found] == [(*batch, count), (*batch, count), (*batch, n)]
    w = np.asarray(op.matrix())
    for at in np.ndindex(*batch):
        close(clements(*[a[at] for a in found], np.asarray(op.pairs)), w[at].astype(complex), TIGHT)


def test_gradients(seed):
    own = [torch.from_numpy(a).requires_grad_() for a in angles(seed, 4)]
    assert torch.autograd.gradcheck(lambda *a: it.Mesh.from_clements(*a, n=4).matrix(), own)
    law = lambda theta, phi, phases: it.Mesh(theta, n=4, phi=phi, phases=phases).clements()
    assert torch.autograd.gradcheck(law, own)


PLANS = [{"n": n, "layers": m, "first": f} for n in (1, 2, 5, 6) for m in (1, 4) for f in ("left", "right")]


@FACE
@pytest.mark.parametrize("plan", [*PLANS, {"n": 1, "layout": "fft"}, {"n": 16, "layout": "fft"}], ids=str)
def test_pairs(package, plan):
    """In the order of theta: a mesh whose other blocks are diag(1, -1) turns these rows alone."""
    op = package.Mesh.random(**plan)
    expected = [pair for layer in ref.mesh_pairs(**plan) for pair in layer]
    pairs = np.asarray(op.pairs)
    assert pairs.shape == (len(expected), 2) == (op.theta.shape[-1], 2) and pairs.dtype.kind == "i"
    assert [tuple(pair) for pair in pairs] == expected
    for k, pair in enumerate(pairs):
        theta = np.full(len(pairs), np.pi / 2)
        theta[k] = 0.3
        w = np.asarray(package.Mesh(given(package, theta), **plan).matrix())
        assert np.argwhere(np.abs(w - np.diag(np.diagonal(w))) > 1e-9).tolist() == [[*pair], [*pair[::-1]]]


@FACE
@SIZES
def test_without_layers(package, n):
    count = n * (n - 1) // 2
    op = package.Mesh(given(package, np.ones((2, count))), n=n, first="right")
    assert op.layers == n and tuple(op.batch_shape) == (2,)
    for wrong in (count - 1, count + 1):
        if wrong >= 0:
            with pytest.raises(ValueError, match="^layers must be given"):
                package.Mesh(given(package, np.ones(wrong)), n=n)
    with pytest.raises(ValueError, match="^layers must be given"):
        package.Mesh(given(package, np.array(1.0)), n=n)


@FACE
def test_phases_are_zero_by_default(seed, package):
    own = [given(package, a) for a in angles(seed, 3)]
    op, same = package.Mesh.from_clements(*own[:2], n=3), package.Mesh.from_clements(*own[:2], 0 * own[2], n=3)
    assert np.array_equal(np.asarray(op.matrix()), np.asarray(same.matrix()))
    with pytest.raises(ValueError, match="^clements needs a mesh with layout 'brick', not 'fft'"):
        package.Mesh.random(4, layout="fft").clements()
