"""The Kronecker product: factors of several dtypes, and random ones."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from registry import DTYPES

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)


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
