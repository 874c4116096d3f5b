"""Nearest orthogonal matrices: values by singular values, gradients by differences, singular and huge matrices."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from isometry.torch.formulas import procrustes as formula
from registry import DTYPES, is_complex
from tolerance import identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
# decomposed in lanes: alone, more than a group, tall, wide; iterated: square, tall, wide, by the blocks of the inverse
SIZES = ((1, 1), (2, 2), (3, 3), (8, 8), (9, 4), (2, 11), (9, 9), (40, 40), (50, 20), (12, 30), (220, 220))


def nearest(a, *, special=False):
    """U V^H, with the last column of U negated for a rotation."""
    u, _, vh = np.linalg.svd(ref.wide(a), full_matrices=False)
    if special:
        u[..., -1] *= np.sign(np.linalg.det(u) * np.linalg.det(vh))[..., None].real
    return u @ vh


def both(a, **options):
    """The result of the NumPy face, after that of torch was found to be the same bits."""
    w = iso.linalg.procrustes(a, **options)
    identical(it.linalg.procrustes(torch.from_numpy(a), **options).numpy(), w)
    return w


def conditioned(rng, *shape, dtype, least=0.3):
    """Matrices with singular values in [least, 1]."""
    u, s, vh = np.linalg.svd(ref.wide(ref.normal(rng, *shape, dtype=dtype)), full_matrices=False)
    a = u * (least + (1 - least) * rng.random(s.shape))[..., None, :] @ vh
    return (a if is_complex(dtype) else a.real).astype(dtype)


@DTYPE
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_values(dtype, size, seed):
    a = conditioned(seed, 20 if max(size) < 20 else 2, *size, dtype=dtype)
    w = both(a)
    assert np.abs(w - nearest(a)).max() < 60 * np.finfo(dtype).eps * max(size) ** 0.5
    assert w.dtype == a.dtype and w.shape == a.shape
    identical(iso.linalg.procrustes(a[1]), w[1])
    identical(iso.linalg.procrustes(a * dtype(2.0**60)), w)
    if size[0] == size[1] and not is_complex(dtype):
        turned = both(a, special=True)
        assert np.abs(turned - nearest(a, special=True)).max() < 100 * np.finfo(dtype).eps * size[0]
        assert np.allclose(np.linalg.det(turned.astype(float)), 1, atol=1e-3)


@DTYPE
@pytest.mark.parametrize("size", [(3, 3), (6, 3), (3, 5), (12, 12), (14, 11), (10, 12)], ids=str)
@pytest.mark.parametrize("equal", [False, True], ids=["drawn", "orthogonal"])
def test_gradients(dtype, size, equal, seed):
    """Against differences; at orthogonal matrices too, where all singular values are equal."""
    a = conditioned(seed, 2, *size, dtype=dtype)
    if equal:
        a = iso.linalg.procrustes(a)
    ct, way = (ref.normal(seed, *a.shape, dtype=dtype) for _ in range(2))
    wide, h = ref.wide(a), 1e-4
    slope = (nearest(wide + h * way) - nearest(wide - h * way)) / (2 * h)
    expected = np.real(np.vdot(ct, slope))
    t = torch.from_numpy(a).requires_grad_()
    it.linalg.procrustes(t).backward(torch.from_numpy(ct))
    bar = iso.linalg.procrustes_vjp(a, ct)
    identical(t.grad.numpy(), bar)
    size = np.linalg.norm(ct) * np.linalg.norm(way)
    assert abs(np.real(np.vdot(bar, way)) - expected) < (1e-6 + 200 * np.finfo(dtype).eps) * size


@DTYPE
@pytest.mark.parametrize("size", [(9, 9), (40, 25), (25, 40), (150, 150)], ids=str)
@pytest.mark.parametrize("least", [1.0, 0.3, 1e-3])
def test_large_gradients_need_no_eigenvectors(dtype, size, least, seed, monkeypatch):
    """Against those by singular vectors in double precision, unless the matrices are nearly singular."""
    a = conditioned(seed, 2, *size, dtype=dtype, least=least)
    ct = ref.normal(seed, *a.shape, dtype=dtype)
    monkeypatch.setattr(np.linalg, "eigh", None)
    bar = iso.linalg.procrustes_vjp(a, ct)
    wide, along = ref.wide(a), ref.wide(ct)
    if size[0] < size[1]:
        wide, along, bar = (np.conj(np.swapaxes(x, 1, 2)) for x in (wide, along, bar))
    u, s, vh = np.linalg.svd(wide, full_matrices=False)
    v, uh = np.conj(np.swapaxes(vh, 1, 2)), np.conj(np.swapaxes(u, 1, 2))
    x = uh @ along @ v
    y = (x - np.conj(np.swapaxes(x, 1, 2))) / (s[:, :, None] + s[:, None, :])
    expected = (u @ y + (along @ v - u @ x) / s[:, None, :]) @ vh
    assert np.abs(bar - expected).max() < 100 * np.finfo(dtype).eps / least * np.abs(expected).max()


@pytest.mark.parametrize("n", [3, 8, 12])
def test_gradient_of_the_nearest_rotation(n, seed):
    a = conditioned(seed, 8, n, n, dtype=float)
    assert {-1.0, 1.0} == set(np.sign(np.linalg.det(a)))
    ct, way = (seed.standard_normal(a.shape) for _ in range(2))
    h = 1e-5
    slope = (nearest(a + h * way, special=True) - nearest(a - h * way, special=True)) / (2 * h)
    bar = iso.linalg.procrustes_vjp(a, ct, special=True)
    assert np.allclose((bar * way).sum((1, 2)), (ct * slope).sum((1, 2)), atol=1e-5)
    t = torch.from_numpy(a).requires_grad_()
    it.linalg.procrustes(t, special=True).backward(torch.from_numpy(ct))
    identical(t.grad.numpy(), bar)


@DTYPE
@pytest.mark.parametrize("n", [1, 3, 8, 9, 30])
def test_singular_matrices(dtype, n):
    """W is orthogonal, nearest, and has a finite gradient."""
    for a in (np.zeros((n, n)), np.ones((n, n)), np.diag([1.0] * (n - 1) + [0.0]), np.eye(n, k=1)):
        w = both(a.astype(dtype))
        eps = np.finfo(dtype).eps
        assert np.abs(np.conj(w.T) @ w - np.eye(n)).max() < 20 * eps * n
        assert np.trace(np.conj(w.T) @ a).real > np.linalg.svd(a, compute_uv=False).sum() - 100 * eps * n
        assert np.isfinite(iso.linalg.procrustes_vjp(a.astype(dtype), w)).all()


def test_threads_and_layouts_change_no_bit(seed):
    for shape in ((301, 3, 3), (5, 40, 40), (1, 220, 200)):
        a = seed.standard_normal(shape)
        w = iso.linalg.procrustes(a)
        identical(iso.linalg.procrustes(np.asfortranarray(a)), w)
        before = iso.get_num_threads()
        try:
            for threads in (1, 2, 3):
                iso.set_num_threads(threads)
                identical(iso.linalg.procrustes(a), w)
        finally:
            iso.set_num_threads(before)


def test_what_is_refused():
    for face, array in ((iso, np.ones), (it, lambda shape: torch.ones(shape, dtype=torch.float64))):
        with pytest.raises(ValueError, match="a must have shape"):
            face.linalg.procrustes(array(3))
        with pytest.raises(ValueError, match=r"special=True needs square matrices, shape \(\*, n, n\), not \(4, 3\)"):
            face.linalg.procrustes(array((4, 3)), special=True)
        with pytest.raises(TypeError, match="special=True needs real matrices"):
            face.linalg.procrustes(array((3, 3)) + 1j, special=True)
    with pytest.raises(ValueError, match="a must be finite"):
        iso.linalg.procrustes([[np.nan]])
    with pytest.raises(ValueError, match="ct must have shape"):
        iso.linalg.procrustes_vjp(np.eye(3), np.eye(2))


def test_every_mode_of_torch(seed):
    """In a graph, by the formula on another device, with second derivatives and inside torch.func."""
    a = torch.from_numpy(seed.standard_normal((3, 5, 4))).requires_grad_()
    call = lambda a: it.linalg.procrustes(a)
    w = call(a)
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    ct = torch.randn_like(w)
    for other in (compiled, lambda a: formula.nearest(a, False)):
        found = other(a)
        assert (found - w).abs().max() < 1e-13
        grads = [torch.autograd.grad(out, a, ct, retain_graph=True)[0] for out in (found, w)]
        assert (grads[0] - grads[1]).abs().max() < 1e-12
    assert call(a.detach().to("meta")).shape == w.shape
    torch.autograd.gradgradcheck(call, a)
    alone = torch.func.vmap(torch.func.grad(lambda a: (call(a) ** 3).sum()))(a.detach())
    assert (alone - torch.autograd.grad((w**3).sum(), a)[0]).abs().max() < 1e-12
