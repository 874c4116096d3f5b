"""`recurrence_vjp` refuses states that its arguments and keywords did not make, and takes all others."""

import itertools

import numpy as np
import pytest

import isometry as iso
import reference as ref

T, B, N, D = 6, 4, 8, 3
KEYWORDS = {
    "h0": np.full((B, N), 0.5),
    "bias": np.full(N, 0.3),
    "activation": "leaky_relu",
    "activation_on": "input",
    "lengths": np.array([2, 6, 1, 4]),
    "reverse": True,
}


def problem(seed, dtype=np.float64, m=2):
    op = iso.Householder(ref.normal(seed, N, m, dtype=dtype))
    return op, ref.normal(seed, T, B, D, dtype=dtype), ref.normal(seed, N, D, dtype=dtype)


def pull(op, x, v, states, **keywords):
    return iso.recurrence_vjp(op, x, v, states, np.ones_like(states), **keywords)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("m", [1, N])
def test_states_of_the_same_keywords_are_taken(dtype, m, seed):
    """All subsets of the keywords, by both routes, for sequences of one step, and where every step is marked."""
    op, x, v = problem(seed, dtype, m)
    marks = {"starts": np.ones((T, B), bool), "start_state": np.full(N, 0.2)}
    for count in range(len(KEYWORDS) + 1):
        for names in itertools.combinations(KEYWORDS, count):
            keywords = {name: KEYWORDS[name] for name in names}
            pull(op, x, v, iso.recurrence(op, x, v, **keywords), **keywords)
            pull(op, x, v, iso.recurrence(op, x, v, **keywords, **marks), **keywords, **marks)
            keywords.pop("lengths", None)
            pull(op, x[:1], v, iso.recurrence(op, x[:1], v, **keywords), **keywords)


@pytest.mark.parametrize("name", KEYWORDS)
def test_a_forgotten_keyword_is_named(name, seed):
    op, x, v = problem(seed)
    for others in ({}, KEYWORDS):
        given = {**others, name: KEYWORDS[name]}
        states = iso.recurrence(op, x, v, **given)
        del given[name]
        with pytest.raises(ValueError, match=rf"^states must be .*was one of [^?]*{name}[^?]*, which have"):
            pull(op, x, v, states, **given)
        pull(op, x, v, states, **given, check_states=False)


def test_a_forgotten_slope_is_named(seed):
    op, x, v = problem(seed)
    states = iso.recurrence(op, x, v, activation="leaky_relu", slope=0.5)
    with pytest.raises(ValueError, match="slope"):
        pull(op, x, v, states, activation="leaky_relu")


def test_other_arguments_are_refused(seed):
    op, x, v = problem(seed)
    states = iso.recurrence(op, x, v)
    for wrong in ((iso.Cayley(np.ones(28)), x, v), (op.H, x, v), (op, x + 1, v), (op, x, -v)):
        with pytest.raises(ValueError, match="^states must be what recurrence returns"):
            pull(*wrong, states)
    for wrong in (states + 0.1, states[::-1], states[:, ::-1], 0 * states):
        with pytest.raises(ValueError, match="^states must be what recurrence returns"):
            pull(op, x, v, wrong)


def test_which_step_is_named(seed):
    op, x, v = problem(seed)
    states = iso.recurrence(op, x, v)
    for step, name in ((0, "first"), (-1, "last")):
        wrong = states.copy()
        wrong[step] += 0.1
        with pytest.raises(ValueError, match=f"100% of the entries of the {name} step"):
            pull(op, x, v, wrong)


def test_a_few_entries_may_lie_on_a_jump(seed):
    """One of 400 is off; five are too many."""
    op, x, v = problem(seed)
    x = np.tile(x, (1, 50 // B + 1, 1))[:, :50]
    states = iso.recurrence(op, x, v)
    states[-1, 0, :4] *= -1
    pull(op, x, v, states)
    states[-1, 0, 4] *= -1
    with pytest.raises(ValueError, match="last step"):
        pull(op, x, v, states)


def test_what_is_not_finite_is_not_refused_for_it(seed):
    op, x, v = problem(seed)
    for bad in (np.nan, np.inf):
        for place in ((0, 0, 0), (-1, -1, -1), (slice(None),)):
            wrong = x.copy()
            wrong[place] = bad
            states = iso.recurrence(op, wrong, v, activation="relu", check_finite=False)
            pull(op, wrong, v, states, activation="relu", check_finite=False)


def test_summands_that_cancel(seed):
    """W h = -b up to rounding: of a step that is zero but for rounding no digit is compared."""
    del seed
    op, x, v = iso.Dense([[-1.0]]), np.zeros((2, 1, 1)), np.zeros((1, 1))
    for bias in np.linspace(-0.5, 0.5, 10):
        keywords = {"bias": [bias], "activation_on": "input"}
        states = iso.recurrence(op, x, v, **keywords)
        states[1] = 1e-17
        pull(op, x, v, states, **keywords)
