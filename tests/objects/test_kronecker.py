"""The Kronecker product against `numpy.kron`: values and gradients, of several dtypes."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from objects.test_every_object import examine
from registry import DTYPES, Case
from subjects import NumpySubject

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
SIZES = {
    "binary": [(2, 2)] * 3,
    "one": [(5, 4)],
    "rectangular": [(2, 3), (4, 1), (1, 2)],
    "uneven": [(3, 3), (17, 5), (2, 2)],
    "numbers": [(1, 1), (1, 1)],
}


@DTYPE
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_values_and_gradients(sizes, dtype, seed):
    factors = {f"factors.{k}": ref.normal(seed, *size, dtype=dtype) for k, size in enumerate(sizes)}
    examine(NumpySubject(Case("kronecker", "square", dtype), factors, n=len(factors) * 51), seed, 7)


def test_factors_of_several_dtypes_promote():
    op = iso.Kronecker([np.eye(2, dtype=np.float32), 1j * np.eye(2)])
    assert op.dtype == np.complex128
    grads, _ = op.apply_vjp(np.ones(4), np.ones(4))
    assert [g.dtype for g in grads["factors"]] == [np.float32, np.complex128]
    assert it.Kronecker([torch.eye(2), torch.eye(2, dtype=torch.complex64)]).dtype == torch.complex64
    with pytest.raises(TypeError, match="same precision"):
        it.Kronecker([torch.eye(2), torch.eye(2, dtype=torch.float64)])


@DTYPE
def test_random_ones_are_unitary(dtype, seed):
    op = iso.Kronecker.random(36, rng=seed, dtype=dtype)
    assert [f.shape for f in op.factors] == [(2, 2), (2, 2), (3, 3), (3, 3)]
    assert iso.orthogonality_error(op.matrix()) < 20
    assert it.Kronecker.random(7, dtype=torch.complex64).factors[0].shape == (7, 7)
