"""Specific properties of the dense operator: random ones, and rows that are refused."""

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


def test_rows_that_are_refused():
    for x, name in ((np.ones((3, 5)), "x"), (np.ones(()), "x"), (np.ones((2, 4), np.float16), "x")):
        with pytest.raises((ValueError, TypeError), match=name):
            iso.Dense(np.ones((3, 4))).apply(x)
