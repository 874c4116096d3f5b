"""The Kronecker product: factors of several dtypes."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it


def test_factors_of_several_dtypes_promote():
    op = iso.Kronecker([np.eye(2, dtype=np.float32), 1j * np.eye(2)])
    assert op.dtype == np.complex128
    grads, _ = op.apply_vjp(np.ones(4), np.ones(4))
    assert [g.dtype for g in grads["factors"]] == [np.float32, np.complex128]
    assert it.Kronecker([torch.eye(2), torch.eye(2, dtype=torch.complex64)]).dtype == torch.complex64
    with pytest.raises(TypeError, match="same precision"):
        it.Kronecker([torch.eye(2), torch.eye(2, dtype=torch.float64)])
