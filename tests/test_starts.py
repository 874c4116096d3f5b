"""Marks within sequences: values and gradients are those of separate calls, on any number of threads."""

from itertools import pairwise

import numpy as np
import pytest

import isometry as iso

ACTIVATIONS = ["identity", "tanh", "leaky_relu", "modrelu", "oplu"]


def pieces(marks, column, length):
    """The steps of the pieces of a column."""
    cuts = [0, *[t for t in range(1, length) if marks[t, column]], length]
    return [(a, b) for a, b in pairwise(cuts) if b > a]


def by_calls(op, x, v, marks, h0, own, lengths, reverse, keywords, ct):
    """States and gradients by a call for each piece."""
    (steps, batch, _), n = x.shape, v.shape[0]
    dtype = np.result_type(x.dtype, op.dtype)
    states, total = np.zeros((steps, batch, n), dtype), {}
    for j in range(batch):
        for a, b in pieces(marks, j, lengths[j]):
            outer = b == lengths[j] if reverse else a == 0 and not marks[0, j]
            part = np.ascontiguousarray(x[a:b, j : j + 1])
            same = {"h0": h0[j] if outer else own[j], "reverse": reverse, **keywords}
            made = iso.recurrence(op, part, v, **same)
            states[a:b, j : j + 1] = made
            one = iso.recurrence_vjp(op, part, v, made, np.ascontiguousarray(ct[a:b, j : j + 1]), **same)
            for name, bar in one.pop("transition").items():
                total[name] = total.get(name, 0) + bar
            total.setdefault("x", np.zeros_like(x))[a:b, j : j + 1] = one["x"]
            total["input_weight"] = total.get("input_weight", 0) + one["input_weight"]
            name = "h0" if outer else "start_state"
            total.setdefault("h0", np.zeros_like(states[0]))
            total.setdefault("start_state", np.zeros_like(states[0]))
            total[name][j] += one["h0"]
    return states, total


def drawn(rng, *shape, complex_=False):
    a = rng.standard_normal(shape)
    return a + 1j * rng.standard_normal(shape) if complex_ else a


@pytest.mark.parametrize("seed", range(24))
def test_values_and_gradients_are_those_of_separate_calls(seed):
    rng = np.random.default_rng(seed)
    complex_ = bool(seed % 4 == 3)
    draw = lambda *shape: drawn(rng, *shape, complex_=complex_)
    n = 2 * int(rng.integers(1, 9))
    steps, batch = int(rng.integers(1, 40)), int(rng.integers(1, 40))
    operators = [
        iso.Cayley(draw(n * (n - 1) // 2)),
        iso.Householder(draw(n, min(n, 3))),
        iso.Dense(draw(n, n) / n),
        iso.Mesh(rng.standard_normal(3 * n // 2 - 1), n=n, layers=3),
    ]
    op = operators[seed % 3] if complex_ else operators[int(rng.integers(4))]
    activation = "modrelu" if complex_ else ACTIVATIONS[int(rng.integers(5))]
    keywords = {"activation": activation, "activation_on": ["all", "input"][int(rng.integers(2))]}
    if activation == "modrelu":
        keywords["activation_bias"] = 0.1 * rng.standard_normal(n)
    marks = rng.random((steps, batch)) < [0.05, 0.3, 1.0][int(rng.integers(3))]
    reverse, varied = bool(rng.integers(2)), bool(rng.integers(2))
    lengths = rng.integers(1, steps + 1, batch) if varied else np.full(batch, steps)
    x, v, h0, own = draw(steps, batch, 2), draw(n, 2), draw(batch, n), draw(batch, n)
    ct = draw(steps, batch, n)
    ending = {"lengths": lengths} if varied else {}
    call = {"h0": h0, "starts": marks, "start_state": own, "reverse": reverse, **keywords, **ending}
    expected, total = by_calls(op, x, v, marks, h0, own, lengths, reverse, keywords, ct)
    found = []
    before = iso.get_num_threads()
    try:
        for threads in (1, 2):
            iso.set_num_threads(threads)
            states = iso.recurrence(op, x, v, **call)
            found.append((states, iso.recurrence_vjp(op, x, v, states, ct, **call)))
    finally:
        iso.set_num_threads(before)
    (states, grads), (again, others) = found
    assert np.array_equal(states, again)
    np.testing.assert_allclose(states, expected, rtol=1e-9, atol=1e-11)
    last = iso.recurrence(op, x, v, output="last", **call)
    ends = np.zeros(batch, int) if reverse else lengths - 1
    assert np.array_equal(last, states[ends, np.arange(batch)])
    own_grads = {**grads, **grads["transition"]}
    own_others = {**others, **others["transition"]}
    for name, bar in total.items():
        assert np.array_equal(own_grads[name], own_others[name]), name
        scale = max(1.0, np.abs(bar).max())
        np.testing.assert_allclose(own_grads[name], bar, rtol=1e-8, atol=1e-10 * scale, err_msg=name)


@pytest.mark.parametrize(("steps", "batch", "n"), [(128, 64, 32), (300, 1, 256), (700, 40, 16)])
def test_many_chunks_and_shared_columns(steps, batch, n):
    """Gradients are gathered in chunks, of halves of the batch, and a single sequence is shared by columns."""
    rng = np.random.default_rng(1)
    op = iso.Dense(np.linalg.qr(rng.standard_normal((n, n)))[0])
    x, v, h0, own, ct = (drawn(rng, *s) for s in ((steps, batch, 2), (n, 2), (batch, n), (batch, n), (steps, batch, n)))
    marks = rng.random((steps, batch)) < 0.05
    call = {"h0": h0, "starts": marks, "start_state": own}
    expected, total = by_calls(op, x, v, marks, h0, own, [steps] * batch, False, {}, ct)
    states = iso.recurrence(op, x, v, **call)
    np.testing.assert_allclose(states, expected, rtol=0, atol=1e-10)
    grads = iso.recurrence_vjp(op, x, v, states, ct, **call)
    grads |= grads["transition"]
    for name, bar in total.items():
        np.testing.assert_allclose(grads[name], bar, rtol=0, atol=1e-9 * max(1.0, np.abs(bar).max()), err_msg=name)


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
    with pytest.raises(ValueError, match=r"start_state must have shape \(E, B, n\)"):
        iso.recurrence(
            iso.Cayley(np.ones((3, 15))), np.ones((9, 3, 2, 3)), v, starts=marks, start_state=np.ones((2, 2, 6))
        )
