"""The Fourier product against its definition: stacks, directions, its arguments of integers."""

import pickle

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import OBJECTS
from tolerance import close, forward, gradient, identical

COMPLEX = pytest.mark.parametrize("dtype", [np.complex64, np.complex128], ids=lambda d: np.dtype(d).name)


def drawn(rng, n, dtype):
    return {**OBJECTS["fourier"].variants["plain"].draw(rng, n, dtype, ()), "permutation": rng.permutation(n)}


@COMPLEX
def test_a_stack_of_permutations(dtype, seed):
    """Arguments with and without leading axes, in the kernels of both faces and in the formula."""
    many = [drawn(seed, 6, dtype) for _ in range(3)]
    stacked = {k: np.stack([one[k] for one in many]) for k in ("phases", "permutation")}
    stacked["vectors"] = many[0]["vectors"]
    ws = np.stack([ref.fourier(**{**one, "vectors": stacked["vectors"]}) for one in many])
    op, own = iso.FourierProduct(**stacked), it.FourierProduct(**{k: torch.from_numpy(a) for k, a in stacked.items()})
    x = ref.normal(seed, 3, 6, dtype=dtype)
    formula = torch.func.vmap(own.apply)(torch.from_numpy(x)[None])[0]
    for found in (op.apply(x), own.apply(torch.from_numpy(x)).numpy(), formula.numpy()):
        close(found, np.einsum("kij,kj->ki", ws, x), forward(dtype, 6))
    close(op[1].matrix(), ws[1], forward(dtype, 6))
    for found in (op.det(), own.det().numpy()):
        close(found, np.linalg.det(ws), forward(dtype, 6))
    with pytest.raises(ValueError, match="permutation must hold each of 0..5 once, got 6"):
        iso.FourierProduct(**{**stacked, "permutation": np.stack([np.arange(k, k + 6) for k in (0, 0, 1)])})


@COMPLEX
@pytest.mark.parametrize("size", [1e-15, 1e15])
def test_only_directions_of_the_vectors_matter(dtype, size, seed):
    arguments = drawn(seed, 12, dtype)
    scaled = {**arguments, "vectors": (arguments["vectors"] * size).astype(dtype)}
    ones, many = iso.FourierProduct(**arguments), iso.FourierProduct(**scaled)
    close(many.matrix(), ones.matrix(), forward(dtype, 12))
    w_bar = ref.normal(seed, 12, 12, dtype=dtype)
    a, b = (op.matrix_vjp(w_bar)["vectors"] for op in (ones, many))
    close(b * size, a, gradient(dtype, 12))
    inner = (ref.wide(a).conj() * arguments["vectors"]).sum(-1).real
    assert np.abs(inner).max() < 1e3 * np.finfo(dtype).eps * np.linalg.norm(a)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_permutations_of_every_integer_type(dtype, seed):
    arguments = drawn(seed, 9, np.complex128)
    narrow = {**arguments, "permutation": arguments["permutation"].astype(dtype)}
    identical(iso.FourierProduct(**narrow).matrix(), iso.FourierProduct(**arguments).matrix())


def test_a_permutation_changed_afterwards_is_an_error_not_a_crash(seed):
    arguments = drawn(seed, 9, np.complex128)
    op = iso.FourierProduct(**arguments)
    arguments["permutation"][:] = 10**6
    with pytest.raises(ValueError, match="permutation must hold each of 0..8 once"):
        op.matrix()


def test_conversions_keep_the_permutation(seed):
    op = iso.FourierProduct(**drawn(seed, 7, np.complex128))
    single = op.astype(np.complex64)
    assert single.dtype == np.complex64
    assert single.phases.dtype == np.float32
    assert single.permutation is op.permutation
    copy = pickle.loads(pickle.dumps(op))
    identical(copy.matrix(), op.matrix())
    own = it.FourierProduct.random(7).to(torch.complex128)
    assert (own.phases.dtype, own.permutation.dtype) == (torch.float64, torch.int64)
    listed = it.FourierProduct(own.phases, own.vectors, own.permutation.tolist())
    torch.testing.assert_close(listed.matrix(), own.matrix())


def test_random_ones_fill_their_ranges(seed):
    op = iso.FourierProduct.random(400, rng=seed)
    assert np.abs(op.phases).max() <= np.pi
    assert np.abs(op.phases).max() > 3
    assert max(np.abs(op.vectors.real).max(), np.abs(op.vectors.imag).max()) <= 1
    identical(np.sort(op.permutation), np.arange(400))
