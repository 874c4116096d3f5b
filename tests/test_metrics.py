"""The orthogonality error, through both faces: its value, bitwise equal for every layout of its argument."""

import numpy as np
import pytest
import torch
from torch.func import vmap

import isometry as iso
import isometry.torch as it
import reference as ref
from derivatives import compiled
from faces import LAYOUTS, TORCH_LAYOUTS, tensor
from registry import DTYPES
from tolerance import close, forward, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
SHAPES = ((50, 21), (4, 5, 34, 34))


@DTYPE
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_orthogonality_error(dtype, shape, seed):
    """One value per matrix, equal to the reference's."""
    w = ref.normal(seed, *shape, dtype=dtype)
    flat = w.reshape(-1, *shape[-2:])
    expected = np.reshape([ref.orthogonality_error(one) for one in flat], shape[:-2])
    close(iso.orthogonality_error(w), expected, forward(np.float64, shape[-2]))
    close(it.orthogonality_error(tensor(w)), expected, forward(dtype, shape[-2]))


@DTYPE
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_orthogonality_error_of_any_layout(dtype, shape, seed):
    """For an orthogonal W the measure is rounding, which reveals any change in the order of summation."""
    w = np.linalg.qr(ref.normal(seed, *shape, dtype=np.result_type(dtype, np.float64)))[0].astype(dtype)
    expected = iso.orthogonality_error(w)
    for layout, change in LAYOUTS.items():
        identical(iso.orthogonality_error(change(w)), expected, layout)
    expected = it.orthogonality_error(tensor(w))
    for layout, change in TORCH_LAYOUTS.items():
        identical(it.orthogonality_error(change(tensor(w))), expected, layout)


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
