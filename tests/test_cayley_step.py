"""One Cayley step of both faces: the formula, the slope, unitarity, and its refusals."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, is_complex
from tolerance import UNITARITY, close, forward, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)


def textbook(w, g, rate):
    """(I + r/2 A)^{-1} (I - r/2 A) W, A = G W^H - W G^H."""
    w, g, i = ref.wide(w), ref.wide(g), np.eye(w.shape[-1])
    a = g @ w.conj().T - w @ g.conj().T
    return np.linalg.inv(i + rate / 2 * a) @ (i - rate / 2 * a) @ w


@DTYPE
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_both_faces_take_the_step(n, dtype, seed):
    w, g = ref.haar(seed, n, dtype), ref.normal(seed, n, n, dtype=dtype)
    for rate in (0.0, 0.1, 3.0):
        found = iso.cayley_step(w, g, rate)
        tensor = it.cayley_step(torch.from_numpy(w), torch.from_numpy(g), rate)
        bound = forward(dtype, n, 1 + rate * np.linalg.norm(g, 2))
        close(found, textbook(w, g, rate), bound)
        close(tensor.numpy(), textbook(w, g, rate), bound)
        assert found.dtype == dtype
        assert iso.orthogonality_error(found) < UNITARITY * (1 + rate)
    close(iso.cayley_step(w, np.zeros_like(g), 1.0), w, 0.0)


def test_stacks_and_real_gradients_of_complex_matrices(seed):
    w = np.stack([ref.haar(seed, 4, np.complex128) for _ in range(3)])
    g = ref.normal(seed, 3, 4, 4)
    found = iso.cayley_step(w, g, 0.2)
    for k in range(3):
        close(found[k], textbook(w[k], g[k], 0.2), 1e-13)
    close(it.cayley_step(torch.from_numpy(w), torch.from_numpy(g), 0.2).numpy(), found, 1e-13)


def both(w, g, rate):
    """The step of each face."""
    return iso.cayley_step(w, g, rate), it.cayley_step(torch.from_numpy(w), torch.from_numpy(g), rate).numpy()


@DTYPE
@pytest.mark.parametrize("rate", [1e3, 1e8, 1e20, 1e30])
@pytest.mark.parametrize("n", [2, 3, 7, 8])
def test_a_step_of_any_length_is_orthogonal_or_refused(n, rate, dtype, seed):
    """A real A of odd n is singular: I + rate/2 A is then lost in double precision."""
    w, g = ref.haar(seed, n, dtype), ref.normal(seed, n, n, dtype=dtype)
    for step in (lambda: iso.cayley_step(w, g, rate), lambda: it.cayley_step(*map(torch.from_numpy, (w, g)), rate)):
        try:
            found = np.asarray(step())
        except ValueError as error:
            assert str(error).startswith("rate must keep") and n % 2 and rate > 1e15 and not is_complex(dtype)
        else:
            assert iso.orthogonality_error(found) < UNITARITY


@DTYPE
@pytest.mark.parametrize("n", [5, 33, 96])
def test_a_member_has_the_same_bits_at_every_place(n, dtype, seed):
    w = np.stack([ref.haar(seed, n, dtype) for _ in range(3)])
    g = ref.normal(seed, 3, n, n, dtype=dtype)
    expected = both(w, g, 0.3)
    for a, b in zip(both(w[::-1].copy(), g[::-1].copy(), 0.3), expected, strict=True):
        identical(a, b[::-1])
    for k in range(3):
        for a, b in zip(both(w[k], g[k], 0.3), expected, strict=True):
            if n > 32:
                identical(a, b[k])
            else:  # in a stack one matrix per lane, with other roundings than alone
                close(a, b[k], forward(dtype, n, 1 + 0.3 * np.linalg.norm(g[k], 2)))


def test_a_step_of_torch_calls_no_solve_of_lapack(seed):
    """Nor do its derivatives."""
    w = torch.from_numpy(ref.haar(seed, 4, np.float64))
    each = torch.func.vmap(torch.func.grad(lambda g: it.cayley_step(w, g, 0.7).square().sum()))
    g = torch.randn(3, 4, 4, dtype=torch.float64)
    for way in (each, torch.compile(each, backend="aot_eager", fullgraph=True)):
        with torch.autograd.profiler.profile() as record:
            way(g)
        assert not [event.key for event in record.key_averages() if "linalg" in event.key]


def test_nan_passes_if_asked_and_precisions_are_one():
    assert np.isnan(iso.cayley_step(np.eye(2), np.full((2, 2), np.nan), 0.1, check_finite=False)).all()
    with pytest.raises(TypeError, match="same precision"):
        it.cayley_step(torch.eye(2), torch.eye(2, dtype=torch.float64), 0.1)
