"""An inverse map followed by the map gives the matrix back, whatever its structure and on both sides of thresholds."""

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
            size = float(np.abs(w).max()) or 1.0
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
