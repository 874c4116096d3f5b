"""The dense operator: rows that are refused."""

import numpy as np
import pytest

import isometry as iso


def test_rows_that_are_refused():
    for x, name in ((np.ones((3, 5)), "x"), (np.ones(()), "x"), (np.ones((2, 4), np.float16), "x")):
        with pytest.raises((ValueError, TypeError), match=name):
            iso.Dense(np.ones((3, 4))).apply(x)
