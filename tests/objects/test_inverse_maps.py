"""Inverse maps of given matrices in both faces, those with structure too: factors, stacks, refusals."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, is_complex, real_of
from registry.exponential import proper
from support import orthogonal, structure
from support.sizes import SHARED, sizes
from tolerance import SLACK, UNITARITY, close, eps, forward, identical

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
    for wrong in ([2, 3], [], [4, 0], [(2, 2, 1), 2], [(4, 2), (1, 1)]):
        with pytest.raises(ValueError, match="factor_sizes"):
            api.Kronecker.from_matrix(array(np.eye(4)), wrong)
    for wrong in (4, "22", [2.0, 2.0]):
        with pytest.raises(TypeError, match="factor_sizes"):
            api.Kronecker.from_matrix(array(np.eye(4)), wrong)
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


MAPS = ("Cayley", "Exponential", "Householder", "Mesh")


def returns(make, w, **options):
    """The operator of W, which comes back to rounding, as orthogonal as every hard parametrisation."""
    op = make(w, **options)
    found = np.asarray(op.matrix())
    assert ref.orthogonality_error(found) <= UNITARITY
    close(found, w, forward(w.dtype, max(len(w), 4)), "round trip", floor=1.0)
    return op


def promised(op, w, first=None):
    """What each map says of the parameters that it chooses."""
    n, slack = len(w), SLACK[np.dtype(real_of(w.dtype)).char]
    assert op.dtype == w.dtype
    if isinstance(op, iso.Cayley):  # the last factor makes no entry of A larger than 1
        assert all(part is None or np.abs(part).max(initial=0) <= 1 + slack for part in (op.upper, op.diagonal))
        assert is_complex(w.dtype) or np.prod(op.signs) == np.sign(np.linalg.det(w))
    elif isinstance(op, iso.Exponential):  # the principal logarithm
        assert np.linalg.norm(ref.skew(op.upper, op.diagonal), 2) <= np.pi + 40 * n * eps(w.dtype)
    elif isinstance(op, iso.Householder):
        assert op.vectors.shape == (n, n - 1)
        identical(op.vectors, np.tril(op.vectors), "the trapezoid")
        close(np.linalg.norm(op.vectors, axis=0), np.ones(n - 1), forward(w.dtype, n), "unit columns")
    else:
        assert (op.n, op.layers, op.layout, op.first) == (n, n, "brick", first)
        names = {k for k in ("phi", "phases", "signs") if getattr(op, k) is not None}
        assert names == ({"phi", "phases"} if is_complex(w.dtype) else {"signs"})


def round_trips(name, dtype, names, own, rng):
    """Every class at one of the sizes, in turn."""
    maker, other = getattr(iso, name), getattr(it, name)
    for k, kind in enumerate(names):
        n = own[k % len(own)]
        w = orthogonal.draw(kind, rng, n, dtype)
        if name == "Exponential":
            w = proper(w)
        rest = {"first": ("left", "right")[rng.integers(2)]} if name == "Mesh" else {}
        try:
            promised(returns(maker.from_matrix, w, **rest), w, **rest)
            if k % 3 == 0:
                returns(maker.from_matrix, w, nearest=True)
            elif k % 3 == 1:
                returns(lambda w, **rest: other.from_matrix(torch.from_numpy(w), **rest), w)
        except (AssertionError, ValueError) as error:
            raise AssertionError(f"{kind}, n = {n}: {error}") from error


def small(name):
    return [n for n in sizes(name.lower(), *SHARED) if n <= 12]


@DTYPE
@pytest.mark.parametrize("name", MAPS)
def test_structured_matrices_come_back(name, dtype, seed):
    round_trips(name, dtype, orthogonal.NAMED, small(name), seed)


@DTYPE
@pytest.mark.parametrize("name", MAPS)
def test_larger_structured_matrices_come_back(name, dtype, seed):
    large = [n for n in sizes(name.lower(), *SHARED) if 12 < n <= 65]
    round_trips(name, dtype, ["blocks", seed.choice(list(orthogonal.NAMED))], seed.permutation(large), seed)


@DTYPE
def test_structured_products_have_factors(dtype, seed):
    """Kronecker factors of any structure and scale: squares of a norm may under- or overflow."""
    tiny = float(np.finfo(dtype).tiny)
    for name in structure.CLASSES:
        for scale in (1.0, 2.0**100, 2.0**-100, 0.9 * float(np.finfo(dtype).max), 2**40 * tiny):
            count = int(seed.integers(1, 4))
            shapes = [tuple(map(int, seed.integers(1, 5, 2))) for _ in range(count)]
            parts = [structure.draw(name, seed, shape, np.result_type(dtype, np.float64)) for shape in shapes]
            w = ref.kronecker([f / (np.abs(f).max() + (np.abs(f).max() < 1e-300)) for f in parts])
            w = (w * (scale if is_complex(dtype) is False else scale / 2)).astype(dtype)
            found = iso.Kronecker.from_matrix(w, shapes).matrix()
            size = max(float(np.abs(w).max()), tiny)  # a smaller one has no inverse
            close(ref.wide(found) / size, ref.wide(w) / size, forward(dtype, 4 * count), f"{name}, {scale}", floor=1.0)


@DTYPE
@pytest.mark.parametrize("name", ["Cayley", "Exponential"])
def test_structured_skew_matrices(name, dtype, seed):
    """from_skew: the map of the reference, orthogonal for every structure."""
    textbook = {"Cayley": ref.cayley, "Exponential": ref.exponential}[name]
    own = sizes(name.lower(), "recovered")
    for k, kind in enumerate(n for n in structure.CLASSES if n not in ("huge_column", "huge_entry")):
        for n in (own[k % len(own)], own[(7 * k + 3) % len(own)]):
            a = structure.draw(kind, seed, (n, n), dtype)
            a = (a - a.conj().T) / 2
            op = getattr(iso, name).from_skew(a)
            w = op.matrix()
            assert ref.orthogonality_error(w) <= UNITARITY, f"{kind}, n = {n}"
            parts = {k: x for k in ("upper", "diagonal") if (x := getattr(op, k)) is not None}
            condition = 1 + np.linalg.norm(ref.wide(a), 2)
            close(w, textbook(**parts), forward(dtype, max(n, 4), condition), f"{kind}, n = {n}")
