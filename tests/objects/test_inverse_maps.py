"""Inverse maps: logarithms, meshes and Kronecker factors of given matrices, in both faces, up to hard cases."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from isometry._inverse.exponential import skew_planes
from registry import DTYPES, is_complex
from registry.exponential import proper
from tolerance import close, eps, forward, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
FACES = pytest.mark.parametrize("api,array", [(iso, np.asarray), (it, torch.as_tensor)], ids=["numpy", "torch"])
SIZES = (1, 2, 3, 4, 5, 8, 33)


def turned(rng, angles, n, complex_=False):
    """Random planes of R^n turned by the angles, or eigenvalues e^{i angle}; 1 in the rest of space."""
    if complex_:
        q, all_angles = ref.haar(rng, n, np.complex128), np.zeros(n)
        all_angles[: len(angles)] = angles
        return (q * np.exp(1j * all_angles)) @ q.conj().T
    w = np.eye(n)
    for k, t in enumerate(angles):
        w[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]
    q = ref.haar(rng, n)
    return q @ w @ q.T


def rigid(n, dtype):
    """Matrices of few values: I, -I, a cycle, a reversal, signs."""
    yield np.eye(n, dtype=dtype)
    yield -np.eye(n, dtype=dtype)
    yield np.roll(np.eye(n, dtype=dtype), 1, 0)
    yield np.eye(n, dtype=dtype)[::-1]
    yield np.diag(np.where(np.arange(n) % 3, 1, -1)).astype(dtype)


# ---------------------------------------------------------------- Exponential


def logarithm(w, **keywords):
    """The operator, after checking that it is the principal logarithm."""
    op, n = iso.Exponential.from_matrix(w, **keywords), w.shape[-1]
    assert op.dtype == w.dtype and op.batch_shape == w.shape[:-2]
    close(op.matrix(), w, forward(w.dtype, n, 4), "round trip", floor=1)
    for b in np.ndindex(w.shape[:-2]):
        a = ref.skew(op.upper[b], None if op.diagonal is None else op.diagonal[b])
        assert np.linalg.norm(a, 2) <= np.pi + 40 * n * eps(w.dtype)
    return op


NEAR = [np.pi - np.array([1, 2, 0, 3, 0.5, 1e-3]) * gap for gap in (0, 1e-17, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3)]
HARD = [
    *NEAR,
    np.pi / 2 + 1e-9 * np.arange(6),
    1e-9 * np.arange(6),
    np.linspace(0, np.pi, 6),
    np.array([np.pi, np.pi - 1e-8, 1, 1, 1 + 1e-12, 0]),
]


@pytest.mark.parametrize("which", range(len(HARD)))
def test_logarithms_of_clustered_eigenvalues(which, seed):
    """Near -1, near i, near 1: exp(A) is W to rounding wherever the eigenvalues are, and A has their angles."""
    angles = HARD[which]
    for n in (12, 15):
        op = logarithm(turned(seed, angles, n))
        found = np.sort(np.abs(np.linalg.eigvalsh(1j * ref.skew(op.upper))))[-12:]
        close(found, np.sort(np.repeat(angles, 2)), 100 * eps("float64"), "angles", floor=1)
    both = np.concatenate((angles, -angles))
    op = logarithm(turned(seed, both, 13, complex_=True))
    found = np.linalg.eigvalsh(-1j * ref.skew(op.upper, op.diagonal))
    close(np.sort(np.abs(found))[-12:], np.sort(np.abs(both)), 100 * eps("float64"), "angles", floor=1)


def test_logarithm_of_minus_one():
    op = iso.Exponential.from_matrix(np.array([[-1.0 + 0j]]))
    assert op.diagonal.tolist() == [np.pi]
    assert np.abs(iso.Exponential.from_matrix(-np.eye(2)).upper).tolist() == [np.pi]


@DTYPE
def test_logarithm_of_an_exponential(dtype, seed):
    """Below ||A|| = pi there is one logarithm."""
    n = 7
    a = ref.normal(seed, n, n, dtype=dtype).astype(np.result_type(dtype, np.float64))
    a = a - a.conj().T
    op = iso.Exponential.from_skew((2.5 / np.linalg.norm(a, 2) * a).astype(dtype))
    assert op.dtype == dtype and (op.diagonal is None) is not is_complex(dtype)
    again = iso.Exponential.from_matrix(op.matrix())
    close(again.upper, op.upper, forward(dtype, n, 4))
    if is_complex(dtype):
        close(again.diagonal, op.diagonal, forward(dtype, n, 4))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8, 33])
def test_planes_of_skew_matrices(d, seed):
    """Orthonormal, and the sum of their turns, for tiny and zero parts too."""
    half = ref.normal(seed, 3, d, d) * np.array([1, 1e-120, 1.0])[:, None, None]
    half[2] *= np.arange(d) < d // 2
    a = half - half.swapaxes(-1, -2)
    x, y, s = skew_planes(a)
    turn = (x * s[:, None]) @ y.swapaxes(-1, -2)
    size = np.abs(a).max((-2, -1), keepdims=True, initial=0) + (a.size == 3)
    assert (np.abs(turn - turn.swapaxes(-1, -2) - a) <= 40 * d * eps("float64") * size).all()
    basis = np.concatenate((x, y), -1)
    gram = basis.swapaxes(-1, -2) @ basis
    assert np.abs(gram - np.eye(2 * (d // 2))).max(initial=0) < 40 * d * eps("float64")


# ---------------------------------------------------------------- Mesh


@DTYPE
@pytest.mark.parametrize("first", ["left", "right"])
@pytest.mark.parametrize("n", SIZES)
def test_meshes_of_matrices(n, first, dtype, seed):
    """All of O(n) and U(n), by n layers."""
    for w in (*(ref.haar(seed, n, dtype) for _ in range(2)), *rigid(n, dtype)):
        op = iso.Mesh.from_matrix(w, first=first)
        assert op.dtype == dtype and (op.n, op.layers, op.layout, op.first) == (n, n, "brick", first)
        assert op.theta.shape == (n * (n - 1) // 2,)
        close(op.matrix(), w, forward(dtype, n), "round trip")
        names = {"phi", "phases"} if is_complex(dtype) else {"signs"}
        assert {k for k in ("phi", "phases", "signs") if getattr(op, k) is not None} == names


def test_mesh_of_nearly_diagonal_matrices(seed):
    """Elements to eliminate far below and around eps."""
    for scale in (1e-300, 1e-20, 1e-16, 1e-9, 1e-4):
        for dtype in (np.float64, np.complex128):
            w = np.linalg.qr(np.eye(6) + scale * ref.normal(seed, 6, 6, dtype=dtype))[0]
            for first in ("left", "right"):
                close(iso.Mesh.from_matrix(w, first=first).matrix(), w, 20 * eps("float64"))


# ---------------------------------------------------------------- Kronecker


@DTYPE
@pytest.mark.parametrize(
    "shapes", [[(2, 2)] * 4, [(3, 3), (4, 4)], [(3, 2), (1, 4), (2, 2)], [(5, 5)], [(1, 1), (2, 3)]]
)
def test_factors_of_products(shapes, dtype, seed):
    parts = [ref.normal(seed, 2, *shape, dtype=dtype) for shape in shapes]
    w = np.stack([ref.kronecker([f[b] for f in parts]) for b in range(2)]).astype(dtype)
    op = iso.Kronecker.from_matrix(w, shapes)
    assert op.dtype == dtype and [f.shape for f in op.factors] == [(2, *shape) for shape in shapes]
    close(op.matrix(), w, forward(dtype, 4 * len(shapes)), "round trip")
    for b in range(2):  # a scale is spread evenly: rms entries are equal but for the norms of orthogonal factors
        norms = [np.linalg.norm(f[b]) / np.prod(shape) ** 0.25 for f, shape in zip(op.factors, shapes, strict=True)]
        close(norms, np.full(len(shapes), norms[0]), forward(dtype, 8))


@DTYPE
def test_factors_of_orthogonal_products_are_orthogonal(dtype, seed):
    w = iso.Kronecker([ref.haar(seed, k, dtype) for k in (2, 3, 4)]).matrix()
    op = iso.Kronecker.from_matrix(-w, [2, 3, 4])
    for factor in op.factors:
        close(factor.conj().T @ factor, np.eye(len(factor)), forward(dtype, 8))
    close(op.matrix(), -w, forward(dtype, 8))
    assert [f.shape for f in iso.Kronecker.from_matrix(w, tol=2).factors] == [(2, 2)] * 3 + [(3, 3)]


def test_the_nearest_product(seed):
    """Two factors: no other is nearer; the distance is in the message, and within tol the product is accepted."""
    b, c = ref.normal(seed, 2, 2), ref.normal(seed, 3, 3)
    w = np.kron(b, c) + 0.05 * ref.normal(seed, 6, 6)
    with pytest.raises(ValueError, match=r"^w must .* with factor_sizes .* is (.*) of the norm of matrix 0") as caught:
        iso.Kronecker.from_matrix(w, [2, 3])
    near = iso.Kronecker.from_matrix(w, [2, 3], tol=0.9)
    distance = np.linalg.norm(w - near.matrix())
    assert f"is {distance / np.linalg.norm(w):.1e} of" in str(caught.value)
    assert distance < np.linalg.norm(w - np.kron(b, c))
    for _ in range(20):
        others = [f + 1e-3 * ref.normal(seed, *f.shape) for f in near.factors]
        assert np.linalg.norm(w - np.kron(*others)) > distance


def test_factors_of_zeros():
    assert not np.any(iso.Kronecker.from_matrix(np.zeros((4, 6)), [2, (2, 3)]).matrix())


# ---------------------------------------------------------------- both faces


def parts(op):
    """The arrays of an operator."""
    if hasattr(op, "factors"):
        return [np.asarray(factor) for factor in op.factors]
    names = ("upper", "diagonal", "theta", "phi", "phases", "signs", "vectors", "sign")
    return [np.asarray(a) for name in names if (a := getattr(op, name, None)) is not None]


@FACES
@DTYPE
def test_stacks_and_views(api, array, dtype, seed):
    """Members of a stack, empty ones too, are those of single matrices; transposed memory changes no bit."""
    w = np.stack([proper(ref.haar(seed, 6, dtype)) for _ in range(6)]).reshape(2, 3, 6, 6)
    products = np.stack([np.kron(v[:2, :2], np.eye(3)) for v in w.reshape(6, 6, 6)]).reshape(w.shape).astype(dtype)
    makers = api.Exponential, api.Mesh, api.Householder, api.Cayley
    for maker, given, rest in (*((maker, w, ()) for maker in makers), (api.Kronecker, products, ([2, 3],))):
        op = maker.from_matrix(array(given), *rest)
        assert tuple(op.batch_shape) == (2, 3)
        close(np.asarray(op.matrix()), given, forward(dtype, 12))
        alone = maker.from_matrix(array(given[1, 2].copy()), *rest)
        for a, b in zip(parts(op), parts(alone), strict=True):
            close(a[1, 2], b, forward(dtype, 12))
        transposed = np.ascontiguousarray(given.swapaxes(-1, -2)).swapaxes(-1, -2)
        for a, b in zip(parts(op), parts(maker.from_matrix(array(transposed), *rest)), strict=True):
            identical(a, b)
        assert tuple(maker.from_matrix(array(given[:0]), *rest).batch_shape) == (0, 3)


@FACES
def test_refusals(api, array, seed):
    q = ref.haar(seed, 4)
    for cls in (api.Exponential, api.Mesh, api.Householder, api.Cayley):
        for w in (q[:3], 1.001 * q, np.ones((4, 4)), np.zeros((0, 0)), np.full((2, 2), np.inf)):
            with pytest.raises(ValueError, match="^w must"):
                cls.from_matrix(array(w))
        with pytest.raises(ValueError, match="w must be unitary: .* of matrix 1"):
            cls.from_matrix(array(np.stack([np.eye(4), 2 * q]) + 0j))
        with pytest.raises(ValueError, match="tol"):
            cls.from_matrix(array(q), tol=-1.0)
        cls.from_matrix(array((1 + 1e-6) * proper(q)), tol=1e-3)
    for w in (-np.eye(3), np.stack([proper(q), q * np.where(np.arange(4) == 0, -np.sign(np.linalg.det(q)), 1)])):
        with pytest.raises(ValueError, match=f"w must have determinant 1 .* matrix {w.ndim - 2} is -1"):
            api.Exponential.from_matrix(array(w))
    with pytest.raises(ValueError, match="first"):
        api.Mesh.from_matrix(array(q), first="top")
    for sizes in ([2, 3], [], [4, 0], [(2, 2, 1), 2], [(4, 2), (1, 1)]):
        with pytest.raises(ValueError, match="factor_sizes"):
            api.Kronecker.from_matrix(array(np.eye(4)), sizes)
    for sizes in (4, "22", [2.0, 2.0]):
        with pytest.raises(TypeError, match="factor_sizes"):
            api.Kronecker.from_matrix(array(np.eye(4)), sizes)
    with pytest.raises(ValueError, match="factor_sizes must be given"):
        api.Kronecker.from_matrix(array(np.ones((2, 4))))
    with pytest.raises(ValueError, match="w must have"):
        api.Kronecker.from_matrix(array(np.ones((0, 4))), [1])
    with pytest.raises(ValueError, match="a must be skew"):
        api.Exponential.from_skew(array(np.ones((2, 2))))


def test_torch_from_skew_is_differentiable(seed):
    half = torch.from_numpy(ref.normal(seed, 3, 4, 4, dtype=np.complex128)).requires_grad_()
    op = it.Exponential.from_skew(half - half.mH)
    op.matrix().abs().square().sum().backward()
    assert half.grad.isfinite().all() and op.diagonal.shape == (3, 4) and op.diagonal.dtype == torch.float64
