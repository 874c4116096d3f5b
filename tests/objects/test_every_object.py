"""Every object at the sizes of its registry entry, where it takes other ways than at those of the laws, and the same
bits in both faces."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from forms import hermitian
from laws.test_layouts import results
from laws.test_operators import agree
from laws.test_recurrence import bptt, loop
from registry import CASES, DTYPES, OBJECTS, is_complex, spread
from subjects import NumpySubject, TorchSubject
from tolerance import close, forward, gradient, identical

SIZES = [(case, *sizes) for case in CASES for sizes in case.object.sizes.get(case.variant, ())]


def examine(subject, rng, rows):
    """Values of so many rows, and the gradients of W, of its products and of those with W^H, which are the same."""
    op, w, dtype, batch = subject.operator(), subject.reference(), subject.dtype, subject.batch_shape
    size, steep = forward(dtype, subject.factors), gradient(dtype, subject.factors)
    x, ct = (ref.normal(rng, rows, *batch, k, dtype=dtype) for k in w.shape[:-3:-1])
    w_bar = np.einsum("r...i,r...j->...ij", ref.wide(ct), x.conj()).astype(dtype)
    expected = subject.reference_matrix_vjp(w_bar)
    close(op.matrix(), w, size, "matrix")
    agree(subject, spread(op.matrix_vjp(w_bar)), expected, steep, subject.floor(w_bar))
    for apply, pull, matrix, y, y_ct in (
        (op.apply, op.apply_vjp, w, x, ct),
        (op.apply_adjoint, op.apply_adjoint_vjp, hermitian(w), ct, x),
    ):
        close(apply(y), np.einsum("...ij,r...j->r...i", matrix, y), size, "apply", floor=1.0)
        grads, y_bar = pull(y, y_ct)
        close(y_bar, np.einsum("...ij,r...i->r...j", matrix.conj(), y_ct), steep, "x_bar", floor=1.0)
        agree(subject, spread(grads), expected, steep, subject.floor(w_bar))


@pytest.mark.parametrize(("case_of", "n", "rows", "batch"), [(*sizes, ())[:4] for sizes in SIZES], ids=str)
def test_sizes(case_of, n, rows, batch, seed):
    """One matrix, or a stack."""
    examine(NumpySubject.draw(case_of, seed, n, batch), seed, rows)


SQUARE = [(case, n) for case, n, _, *stacks in SIZES if case.square and not stacks]


@pytest.mark.parametrize(("case_of", "n"), SQUARE, ids=str)
def test_recurrences_of_these_sizes(case_of, n, seed):
    """Step by step, or through the matrix."""
    for law in (loop, bptt):
        law(NumpySubject.draw(case_of, seed, n), seed)


def test_both_faces_give_the_same_bits(case, seed):
    """They call the same kernels."""
    one = NumpySubject.draw(case, seed, 9)
    other = TorchSubject(case, one.arguments, n=one.n)
    n_out, n_in = one.matrix().shape
    given = (ref.normal(seed, *shape, dtype=case.dtype) for shape in ((3, n_in), (3, n_out), (n_out, n_in)))
    given = [*given, {}]
    for a, b in zip(results(one, *given), results(other, *given), strict=True):
        identical(np.asarray(a), np.asarray(b))


NAMES = ["Cayley", "Exponential", "Householder", "Mesh"]


@pytest.mark.parametrize("n", [1, 3, 11])
@pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", NAMES)
def test_a_noisy_matrix_is_projected(seed, name, complex_, n):
    """Onto what linalg.procrustes gives, for both faces; without it a tolerance refuses the noise."""
    dtype = np.complex128 if complex_ else np.float64
    w = np.stack([ref.haar(seed, n, dtype) for _ in range(2)])
    if name == "Exponential" and not complex_:
        w[..., 0] *= np.linalg.det(w)[:, None]
    noisy = w + 0.05 * ref.normal(seed, 2, n, n, dtype=dtype)
    special = name == "Exponential" and not complex_
    expected = iso.linalg.procrustes(noisy, special=special)
    found = getattr(iso, name).from_matrix(noisy, nearest=True).matrix()
    assert np.allclose(found, expected, atol=1e-13)
    other = getattr(it, name).from_matrix(torch.from_numpy(noisy), nearest=True).matrix()
    assert np.allclose(other.numpy(), expected, atol=1e-13)
    for package, given in ((iso, noisy), (it, torch.from_numpy(noisy))):
        with pytest.raises(ValueError, match=r"^w .*W\^H W - I.*; nearest=True, or procrustes, takes the nearest"):
            getattr(package, name).from_matrix(given)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])
def test_haar(package, dtype):
    """Both determinants; the mean of |w_ij|^2 is 1 / n and that of |trace|^2 is 1, unlike those of `random`; special
    ones have determinant 1, and the mean of W is still zero."""
    make = package.Householder.haar
    given = {"dtype": dtype if package is iso else getattr(torch, dtype)}
    given |= {"rng": 3} if package is iso else {"generator": torch.Generator().manual_seed(3)}
    for special in (False, True):
        for n in (1, 2, 3):
            w = np.asarray(make(n, batch_shape=(40, 50), special=special, **given).matrix()).reshape(-1, n, n)
            eps = np.finfo(dtype).eps
            assert w.dtype == dtype and abs(w @ np.swapaxes(w, 1, 2).conj() - np.eye(n)).max() < 20 * eps
            assert abs((np.abs(w) ** 2).mean(0) * n - 1).max() < 0.1
            determinants = np.linalg.det(w)
            if special:
                assert abs(determinants - 1).max() < 40 * eps
                assert n == 1 or abs(w.mean(0)).max() < 0.1
            else:
                assert abs(determinants.mean()) < 0.1
                assert abs((np.abs(np.trace(w, axis1=1, axis2=2)) ** 2).mean() - 1) < 0.15
            assert len(np.unique(w[:, 0, 0])) > 1000 or n == 1
    if package is iso:
        one, stack = (make(4, rng=7, dtype=dtype, **more).matrix() for more in ({}, {"batch_shape": (2,)}))
        assert np.array_equal(one, stack[0])
    assert make(3, batch_shape=(0, 2), **given).batch_shape == (0, 2)
    assert make(1, **given).shape == (1, 1)
    for n, batch, named in ((3, (-1,), "batch_shape"), (0, (), "^n ")):
        with pytest.raises(ValueError, match=named):
            make(n, batch_shape=batch)
    with pytest.raises(TypeError, match="^special "):
        make(3, special=1)


OBJECT = pytest.mark.parametrize("stem", OBJECTS)
FACES = pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])


def kinds(package, stem, dtype):
    """The class, its size and options, and the dtype in that face; None where no variant has the field."""
    entry = OBJECTS[stem]
    if not any(("c" if is_complex(dtype) else "r") in variant.fields for variant in entry.variants.values()):
        return None
    kind = dtype if package is iso else getattr(torch, np.dtype(dtype).name)
    return getattr(package, entry.declaration.name), {"n": 8, **entry.random(8), "dtype": kind}


def source(package, seed):
    return (
        {"rng": np.random.default_rng(seed)} if package is iso else {"generator": torch.Generator().manual_seed(seed)}
    )


@FACES
@OBJECT
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_members_are_drawn_one_after_another(package, stem, dtype):
    found = kinds(package, stem, dtype)
    if found is None:
        return
    cls, options = found
    stack = cls.random(**options, **source(package, 5), batch_shape=(2, 3))
    assert type(stack) is cls and stack.batch_shape == (2, 3)
    same = source(package, 5)
    singles = [cls.random(**options, **same) for _ in range(6)]
    assert all(single.batch_shape == () for single in singles)
    expected = np.stack([np.asarray(single.matrix()) for single in singles]).reshape(2, 3, 8, 8)
    matrices = np.asarray(stack.matrix())
    assert matrices.dtype == dtype and np.allclose(matrices, expected, atol=1e-5 if dtype == np.float32 else 1e-12)
    assert np.abs(matrices[0, 0] - matrices[1, 2]).max() > 1e-3  # members differ
    assert cls.random(**options, **source(package, 5), batch_shape=[4]).batch_shape == (4,)
    empty = cls.random(**options, batch_shape=(0, 2))
    assert empty.batch_shape == (0, 2) and np.asarray(empty.matrix()).shape == (0, 2, 8, 8)


@FACES
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("kind", "most"), [("Cayley", 1), ("Exponential", np.pi)])
def test_skew_matrices_have_blocks(package, kind, most, dtype):
    """A is zero but for an angle in each 2 x 2 block, by which the plane is turned."""
    op = getattr(package, kind).random(7, dtype=dtype if package is iso else getattr(torch, np.dtype(dtype).name))
    a = ref.skew(np.asarray(op.upper))
    blocks = a[[0, 2, 4], [1, 3, 5]]
    assert np.count_nonzero(a) == 6 and not blocks.imag.any()
    assert (np.abs(blocks) <= most + 1e-6).all() and (kind == "Exponential" or (blocks.real > 0).all())
    assert not np.asarray(op.diagonal).any() if is_complex(dtype) else op.diagonal is None
    if kind == "Cayley" and is_complex(dtype):
        phases = np.asarray(op.phases)
        assert phases.shape == (7,) and ((phases >= 0) & (phases <= 2 * np.pi + 1e-6)).all()


@FACES
def test_a_seed_and_torchs_own_generator(package):
    if package is iso:
        w = iso.Exponential.random(4, rng=3, batch_shape=(2,)).matrix()
        first = iso.Exponential.random(4, rng=3).matrix()
    else:
        torch.manual_seed(3)
        w = it.Exponential.random(4, batch_shape=(2,)).matrix()
        torch.manual_seed(3)
        first = it.Exponential.random(4).matrix()
    assert (w[0] == first).all() and not (w[1] == first).all()


@FACES
@pytest.mark.parametrize("shape", [3, "ab", (-1,), (2.5,)])
def test_refusals(package, shape):
    with pytest.raises((TypeError, ValueError), match="batch_shape"):
        package.Householder.random(4, batch_shape=shape)


@FACES
@OBJECT
def test_the_docstring_tells_it_from_haar(package, stem):
    """Those that draw neither a Haar-distributed matrix nor Haar-distributed factors."""
    text = getattr(package, OBJECTS[stem].declaration.name).random.__doc__
    assert "batch_shape" in text
    assert ("Not the Haar measure" in text) == (stem not in ("bounded_svd", "dense", "kronecker"))
