"""Marks within sequences of the NumPy face: shapes of ensembles, what is not served."""

import numpy as np
import pytest

import isometry as iso
from isometry import _core


def test_what_is_not_served_says_so():
    x, v, marks = np.ones((9, 2, 3)), np.ones((6, 3)), np.zeros((9, 2), bool)
    with pytest.raises(NotImplementedError, match="starts"):
        iso.recurrence(iso.Cayley(np.ones(15)), x, v, starts=marks, backend="gpu")
    for bad in (marks[:, None], np.zeros((3, 9, 2), bool)):
        with pytest.raises(ValueError, match=r"starts must have shape \(T, E, B\)"):
            iso.recurrence(iso.Cayley(np.ones((3, 15))), np.ones((9, 3, 2, 3)), v, starts=bad)
    with pytest.raises(ValueError, match=r"start_state must have shape \(T, E, B, n\)"):
        iso.recurrence(
            iso.Cayley(np.ones((3, 15))), np.ones((9, 3, 2, 3)), v, starts=marks, start_state=np.ones((2, 2, 6))
        )


def test_marks_of_a_memory_are_refused():
    x, w, u, b = np.ones((3, 2, 1)), np.ones((4, 2)), np.ones((6, 1)), np.ones(6)
    law, steps = ("tanh", 0.1, (True, None)), (None, False, np.zeros((3, 2), np.int64))
    results = np.empty((3, 2, 2)), np.empty((2, 2, 2)), None
    with pytest.raises(NotImplementedError, match="starts"):
        _core.sequence("rum", None, (x, w, u, b, *[None] * 4), law, steps, results, 1)
