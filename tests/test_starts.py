"""Marks within sequences of the NumPy face: none, those of other calls, refusals."""

import numpy as np
import pytest

import isometry as iso
from isometry import _core


def drawn(rng, *shape):
    return rng.standard_normal(shape)


def test_without_a_mark_no_bit_changes():
    rng = np.random.default_rng(2)
    op, x, v, h0 = iso.Cayley(drawn(rng, 15)), drawn(rng, 9, 20, 3), drawn(rng, 6, 3), drawn(rng, 20, 6)
    plain = iso.recurrence(op, x, v, h0=h0)
    assert np.array_equal(plain, iso.recurrence(op, x, v, h0=h0, starts=np.zeros((9, 20), bool)))
    ct = drawn(rng, 9, 20, 6)
    one = iso.recurrence_vjp(op, x, v, plain, ct, h0=h0)
    other = iso.recurrence_vjp(op, x, v, plain, ct, h0=h0, starts=np.zeros((9, 20), bool), start_state=h0)
    assert one["start_state"] is None
    assert not other["start_state"].any()
    assert np.array_equal(one["x"], other["x"])
    assert np.array_equal(one["transition"]["upper"], other["transition"]["upper"])


def test_states_of_other_marks_are_refused():
    rng = np.random.default_rng(3)
    op, x, v, marks = iso.Cayley(drawn(rng, 15)), drawn(rng, 9, 2, 3), drawn(rng, 6, 3), np.zeros((9, 2), bool)
    marks[8] = True
    states = iso.recurrence(op, x, v, starts=marks)
    iso.recurrence_vjp(op, x, v, states, states, starts=marks)
    with pytest.raises(ValueError, match="states"):
        iso.recurrence_vjp(op, x, v, states, states)


@pytest.mark.parametrize(
    ("marks", "error"),
    [(np.zeros((9, 2)), TypeError), (np.zeros((2, 9), bool), ValueError), (np.zeros(9, bool), ValueError)],
    ids=["float", "transposed", "vector"],
)
def test_wrong_marks(marks, error):
    op, x, v = iso.Cayley(np.ones(15)), np.ones((9, 2, 3)), np.ones((6, 3))
    with pytest.raises(error, match="starts"):
        iso.recurrence(op, x, v, starts=marks)


def test_what_is_not_served_says_so():
    x, v, marks = np.ones((9, 2, 3)), np.ones((6, 3)), np.zeros((9, 2), bool)
    with pytest.raises(ValueError, match="start_state"):
        iso.recurrence(iso.Cayley(np.ones(15)), x, v, starts=marks, start_state=np.ones(7))
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
