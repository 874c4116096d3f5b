"""Documented behaviour for unusual numbers: denormals, the norms of vectors, mixed precision."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, real_of
from tolerance import close, forward, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
REAL = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: np.dtype(d).name)
FACES = pytest.mark.parametrize("api,array", [(iso, np.asarray), (it, torch.as_tensor)], ids=["numpy", "torch"])


def denormals(dtype, *shape):
    """Numbers between 0 and the smallest normal one."""
    return (np.linspace(0.1, 0.9, np.prod(shape)).reshape(shape) * np.finfo(dtype).tiny).astype(dtype)


@FACES
@DTYPE
def test_denormal_numbers_count_as_zero(api, array, dtype, seed):
    """In every computing kernel: an operator on rows, a recurrence, an activation."""
    u, a, w = (ref.normal(seed, *shape, dtype=dtype) for shape in ((6, 2), (15,), (6, 6)))
    x, v, h0 = denormals(dtype, 4, 3, 6), np.eye(6, dtype=dtype), denormals(dtype, 3, 6)
    assert np.count_nonzero(x) == x.size
    for op in (api.Householder(array(u)), api.Cayley(array(a)), api.Dense(array(w))):
        assert not np.count_nonzero(op.apply(array(x)))
        assert not np.count_nonzero(op.apply_adjoint(array(x)))
        states = api.recurrence(op, array(x), array(v), h0=array(h0), activation="identity")
        assert not np.count_nonzero(states)
    bias = array(np.ones(6, real_of(dtype)))
    assert not np.count_nonzero(api.activate(array(x), "tanh"))
    assert not np.count_nonzero(api.activate(array(x), "modrelu", bias=bias))


@FACES
@DTYPE
def test_what_is_copied_keeps_denormal_numbers(api, array, dtype):
    x = denormals(dtype, 4, 6)
    op = api.Householder(array(np.zeros((6, 0), dtype)))
    for copy in (api.activate(array(x), "identity"), api.Dense(array(x)).matrix(), op.apply(array(x))):
        identical(np.asarray(copy), x)


@FACES
@DTYPE
def test_the_lengths_that_reflection_vectors_may_have(api, array, dtype, seed):
    """The squared norm is a normal number of the type, at both ends of the range."""
    u = ref.normal(seed, 5, 1, dtype=dtype)
    u /= np.linalg.norm(u)
    for length, inside in zip(
        [1.0e-19, 1.2e-19, 1.8e19, 1.9e19] if real_of(dtype) is np.float32 else [1.4e-154, 1.6e-154, 1.3e154, 1.4e154],
        [False, True, True, False],
        strict=True,
    ):
        vectors = array((length * u).astype(dtype))
        if inside:
            close(np.asarray(api.Householder(vectors).matrix()), ref.householder(u), forward(dtype, 5))
        else:
            with pytest.raises(ValueError, match="vectors must not contain .* denormal"):
                api.Householder(vectors)


@REAL
def test_signs_promote_as_every_array_does(dtype):
    """NumPy face: float64 signs, as which integers are read, make W float64; those of a float32 W are float32."""
    upper = np.ones(3, np.float32)
    for signs in ([1, 1, -1], [1.0, 1.0, -1.0], np.array([1, 1, -1]), np.array([1.0, 1.0, -1.0])):
        op = iso.Cayley(upper, signs=signs)
        assert op.dtype == op.matrix().dtype == np.float64
        assert op.matrix_vjp(np.eye(3))["upper"].dtype == np.float32
    signs = np.array([1, 1, -1], dtype)
    assert iso.Cayley(upper, signs=signs).dtype == dtype
    w = iso.Cayley(upper, signs=signs).matrix().astype(np.float32)
    assert iso.Cayley.from_matrix(w, signs).upper.dtype == dtype
