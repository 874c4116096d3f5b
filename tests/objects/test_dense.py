"""Specific properties of the dense operator: any rectangle, batched products of every size, and its errors."""

import numpy as np
import pytest

import isometry as iso
import reference as ref
from registry import DTYPES

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)


@DTYPE
def test_random_is_haar_and_orthogonal(dtype):
    w = iso.Dense.random(12, rng=3, dtype=dtype).weight
    assert w.dtype == dtype
    assert ref.orthogonality_error(w) <= 20


@pytest.mark.parametrize("weight", [np.zeros(3), np.zeros(())], ids=["vector", "number"])
def test_refusals(weight):
    with pytest.raises(ValueError, match="weight"):
        iso.Dense(weight)


def test_refused_types():
    for weight in (np.ones((2, 2), np.float16), np.ones((2, 2), object), np.array([["a"]])):
        with pytest.raises(TypeError, match="weight"):
            iso.Dense(weight)
    for x, name in ((np.ones((3, 5)), "x"), (np.ones(()), "x"), (np.ones((2, 4), np.float16), "x")):
        with pytest.raises((ValueError, TypeError), match=name):
            iso.Dense(np.ones((3, 4))).apply(x)
