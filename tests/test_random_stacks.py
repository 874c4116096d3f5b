"""`random(batch_shape=)` of every operator, in both faces: draws one after another, as one operator."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, OBJECTS, is_complex

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
