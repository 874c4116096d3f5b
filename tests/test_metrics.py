"""The orthogonality error, through both faces: its value, bitwise equal for every layout of its argument."""

import numpy as np
import pytest
import torch
from torch.func import vmap

import isometry as iso
import isometry.torch as it
import reference as ref
from derivatives import compiled
from faces import tensor
from registry import DTYPES
from tolerance import identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
SHAPES = ((50, 21), (4, 5, 34, 34))


@pytest.mark.parametrize("w", [np.eye(3) * 1e200, np.full((2, 2), 1e200), np.full((2, 2), 1e200 + 1e200j)], ids=str)
def test_orthogonality_error_of_huge_entries(w):
    """Infinity, even where products cancel; no warning, which would be an error."""
    signed = w * np.where(np.tri(len(w), k=-1).T, -1, 1)
    for error in (iso.orthogonality_error, lambda w: it.orthogonality_error(tensor(w))):
        assert error(w) == error(signed) == np.inf
    stack = np.stack([np.eye(len(w)), w])
    assert iso.orthogonality_error(stack).tolist() == [0, np.inf]
    assert np.isnan(iso.orthogonality_error(w * np.nan, check_finite=False))


def test_orthogonality_error_of_an_operator(seed):
    op = it.Householder(tensor(ref.normal(seed, 3, 5, 2, dtype=np.float32)))
    assert torch.equal(it.orthogonality_error(op), it.orthogonality_error(op.matrix()))
    op = iso.Householder(ref.normal(seed, 3, 5, 2, dtype=np.float32))
    identical(iso.orthogonality_error(op), iso.orthogonality_error(op.matrix()))


@DTYPE
def test_orthogonality_error_is_compiled(dtype, seed):
    w = tensor(ref.normal(seed, 4, 5, 3, dtype=dtype))
    assert torch.equal(compiled(it.orthogonality_error)(w), it.orthogonality_error(w))


def test_orthogonality_error_is_mapped(seed):
    w = tensor(ref.normal(seed, 4, 5, 3, dtype=np.complex64))
    assert torch.equal(vmap(it.orthogonality_error)(w), it.orthogonality_error(w))
