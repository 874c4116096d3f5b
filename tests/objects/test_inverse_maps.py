"""Inverse maps of given matrices in both faces: Kronecker factors, stacks, refusals."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES
from registry.exponential import proper
from tolerance import close, forward, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
FACES = pytest.mark.parametrize("api,array", [(iso, np.asarray), (it, torch.as_tensor)], ids=["numpy", "torch"])
# ---------------------------------------------------------------- Exponential


def test_logarithm_of_minus_one():
    op = iso.Exponential.from_matrix(np.array([[-1.0 + 0j]]))
    assert op.diagonal.tolist() == [np.pi]
    assert np.abs(iso.Exponential.from_matrix(-np.eye(2)).upper).tolist() == [np.pi]


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
