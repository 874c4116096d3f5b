"""A recurrence over a stack of operators: stacks without a kernel, a single member, refusals."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
import tolerance
from isometry import _core

MEMBERS, STEPS, BATCH, N, FEATURES = 3, 5, 4, 6, 2


def test_a_stack_of_any_operator(seed):
    """A product of stacks has no kernel of its own: its matrices serve."""
    u, a = 0.5 * ref.normal(seed, MEMBERS, N, 2), ref.normal(seed, MEMBERS, N * (N - 1) // 2)
    x, v = ref.normal(seed, STEPS, MEMBERS, BATCH, FEATURES), ref.normal(seed, N, FEATURES)
    for api, take in ((iso, np.asarray), (it, torch.from_numpy)):
        op = api.Householder(take(u)) @ api.Cayley(take(a))
        states = api.recurrence(op, take(x), take(v))
        for i in range(MEMBERS):
            one = api.recurrence(op[i], take(np.ascontiguousarray(x[:, i])), take(v))
            tolerance.close(states[:, i], one, tolerance.sequence("float64", N, STEPS))


def test_one_member_of_one(seed):
    u, x, v = ref.normal(seed, 1, N, 2), ref.normal(seed, STEPS, 1, 1, FEATURES), ref.normal(seed, 1, N, FEATURES)
    states = iso.recurrence(iso.Householder(u), x, v)
    np.testing.assert_array_equal(states[:, 0], iso.recurrence(iso.Householder(u[0]), x[:, 0], v[0]))


def test_states_of_other_arguments_are_refused(seed):
    a, x = 0.5 * ref.normal(seed, MEMBERS, N * (N - 1) // 2), ref.normal(seed, STEPS, MEMBERS, BATCH, FEATURES)
    arrays = iso.Cayley(a), x, ref.normal(seed, N, FEATURES)
    states = iso.recurrence(*arrays)
    states[:, 1] += 1
    with pytest.raises(ValueError, match="states must be"):
        iso.recurrence_vjp(*arrays, states, states)


FACES = pytest.mark.parametrize(("api", "take"), [(iso, np.asarray), (it, torch.from_numpy)], ids=["numpy", "torch"])
WRONG = {
    "x for one": ({"x": (STEPS, BATCH, FEATURES)}, "transition must be one operator"),
    "two batch axes": ({"vectors": (2, MEMBERS, N, 1)}, "transition must be one operator"),
    "x of other members": ({"x": (STEPS, 2, BATCH, FEATURES)}, r"x must have shape \(T, E, B, d\)"),
    "x with another axis": ({"x": (STEPS, MEMBERS, BATCH, FEATURES, 1)}, r"x must have shape \(T, E, B, d\)"),
    "input_weight": ({"input_weight": (2, N, FEATURES)}, "input_weight must have 2 axes"),
    "h0": ({"h0": (2, BATCH, N)}, "h0 must have 2 axes"),
    "rows of h0": ({"h0": (MEMBERS, 3, N)}, "h0 must have shape"),
    "bias": ({"bias": (MEMBERS, N + 1)}, "bias must have shape"),
}


@FACES
@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes(api, take, mistake):
    """A message names the argument and the members."""
    shapes = {"vectors": (MEMBERS, N, 1), "x": (STEPS, MEMBERS, BATCH, FEATURES), "input_weight": (N, FEATURES)}
    wrong, message = WRONG[mistake]
    arrays = {key: take(np.ones(shape)) for key, shape in {**shapes, **wrong}.items()}
    with pytest.raises(ValueError, match=message):
        api.recurrence(api.Householder(arrays.pop("vectors")), **arrays)


def test_the_extension_checks_what_memory_safety_needs():
    """Wrong numbers of members, shapes and lengths never reach the kernels."""
    x, v, u = np.ones((2, 3, 2, 1)), np.ones((1, 4, 1)), np.ones((2, 4, 1))
    right = {"x": x, "v": v, "h0": None, "b": None, "own": None}

    def run(members=2, u=u, out=(2, 3, 2, 4), phi="tanh", ends=None, starts=(None, None), **wrong):
        arrays, (marks, state) = (right | wrong).values(), starts
        law, steps, results = (phi, 0.1, (False,)), (ends, False, marks), (np.empty(out), None, None)
        transition = "householder", (u, None, None)
        _core.sequence("recurrence", transition, (*arrays, state), law, steps, results, 2, None, members)

    run()
    for wrong in (
        {"members": 3},
        {"members": 3, "out": (3, 3, 2, 4)},
        {"u": np.ones((1, 4, 1))},
        {"u": np.ones((4, 1))},
        {"out": (1, 3, 2, 4)},
        {"x": np.ones((3, 2, 1))},
        {"v": np.ones((3, 4, 1))},
        {"h0": np.ones((2, 4))},
        {"b": np.ones((2, 3))},
        {"ends": np.array([1, 1, 1])},
        {"starts": (np.zeros((3, 3, 2), np.int64), None)},
        {"starts": (np.zeros((2, 2, 2), np.int64), None)},
        {"starts": (np.zeros((1, 3, 2), np.int64), np.zeros((1, 2, 3)))},
        {"ends": np.array([1, 3])},
        {"ends": np.array([4, 1])},
        {"phi": "modrelu", "own": np.ones((2, 3))},
    ):
        with pytest.raises(ValueError):
            run(**wrong)


def test_what_is_not_served_says_so():
    with pytest.raises(NotImplementedError, match="starts"):
        x, marks = np.ones((9, 2, 3)), np.zeros((9, 2), bool)
        iso.recurrence(iso.Cayley(np.ones(15)), x, np.ones((6, 3)), starts=marks, backend="gpu")
    with pytest.raises(ValueError, match="checkpoint must be 'none' for an ensemble, not 'sqrt'"):
        it.recurrence(it.Cayley(torch.zeros(2, 15)), torch.zeros(3, 1, 1, 2), torch.zeros(6, 2), checkpoint="sqrt")
