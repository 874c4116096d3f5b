"""`it.goru`: the GRU with W_h's matrix, step by step and through it; every mode of torch, threads, refusals."""

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import derivatives
import isometry.torch as it
import tolerance
from derivatives import (
    TRANSFORMS,
    draw,
    every_member,
    every_order,
    gradients,
    same,
    same_when_compiled,
    score,
    transform_agrees,
)
from isometry import _core

N, STEPS, BATCH, FEATURES = 4, 3, 2, 2


class Shear(it.Operator):
    """An operator of one's own: I + a above the diagonal."""

    def __init__(self, a):
        super().__init__(shape=(a.shape[0] + 1,) * 2, dtype=a.dtype)
        self.a = a

    def matrix(self, *, backend=None, check_finite=True):  # noqa: ARG002
        return torch.eye(self.shape[0], dtype=self.dtype) + torch.diag(self.a, 1)


#: name -> (shapes of the arguments for n states, the operator of them)
TRANSITIONS = {
    "householder": (lambda n: [(n, 2)], it.Householder),
    "cayley": (lambda n: [(n * (n - 1) // 2,)], it.Cayley),
    "kronecker": (lambda n: [(2, 2), (n // 2, n // 2)], lambda *factors: it.Kronecker(factors)),
    "adjoint": (lambda n: [(n, 2)], lambda u: it.Householder(u).H),
    "composition": (lambda n: [(n, 1), (n, n)], lambda u, w: it.Householder(u) @ it.Dense(w)),
    "own": (lambda n: [(n - 1,)], Shear),
}
OPTIONS = {
    "before": {},
    "after": {"reset": "after"},
    "reverse with lengths": {"reverse": True, "lengths": [2, 3]},
    "after with lengths": {"reset": "after", "lengths": [1, 3]},
}
each_transition = pytest.mark.parametrize("name", TRANSITIONS)
each_option = pytest.mark.parametrize("option", OPTIONS)


def problem(rng, name, dtype=np.float64, sizes=(N, STEPS, BATCH, FEATURES), activation="tanh", **keywords):
    """The states as a function of x, w, u, b, h0, the transition's arguments and modReLU's bias; and a point."""
    n, steps, batch, features = sizes
    shapes, build = TRANSITIONS[name]
    own = shapes(n)
    all_shapes = [(steps, batch, features), (2, n, n), (3, n, features), (3, n), (batch, n), *own]
    at = [draw(rng, *shape, dtype=dtype) / (1 if len(shape) < 3 else n**0.5) for shape in all_shapes]
    if activation == "modrelu":
        at.append(0.1 + draw(rng, n, dtype=dtype).abs())

    def f(x, w, u, b, h0, *rest):
        arguments, bias = rest[: len(own)], rest[len(own) :]
        given = {"activation": activation, "activation_bias": bias[0] if bias else None, **keywords}
        return it.goru(build(*arguments), x, w, u, b, h0=h0, **given)

    return f, at


def by_gru(name, keywords):
    """The same by `it.gru` and the matrix."""
    build = TRANSITIONS[name][1]

    def f(x, w, u, b, h0, *arguments):
        return it.gru(x, torch.cat((w, build(*arguments).matrix()[None])), u, b, h0=h0, **keywords)

    return f


@each_transition
@each_option
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["single", "double"])
def test_states_and_gradients_are_those_of_the_gru(dtype, option, name, seed):
    f, at = problem(seed, name, dtype, **OPTIONS[option])
    theirs = by_gru(name, OPTIONS[option])
    wide = [t.double() for t in at]
    tolerance.close(f(*at), theirs(*wide), tolerance.sequence(dtype, N, STEPS), "states")
    for bar, expected in zip(gradients(f, at), gradients(theirs, wide), strict=True):
        tolerance.close(bar, expected, tolerance.sequence_gradient(dtype, N, STEPS), "gradient")


def test_an_operator_on_rows_is_applied_step_by_step(seed):
    """The same for a product of many factors, of which the matrix is never formed."""
    factors = [draw(seed, 2, 2) for _ in range(7)]
    op = it.Kronecker(factors)
    route = lambda stem, *arrays: _core.recurrence_route(stem, arrays, STEPS, BATCH, True)
    assert route("kronecker", *[t.numpy() for t in factors]) == "factored"
    assert route("householder", draw(seed, 32, 2).numpy(), None, None) == "dense"
    n = op.shape[0]
    shapes = [(STEPS, BATCH, 3), (2, n, n), (3, n, 3), (3, n), (BATCH, n)]
    at = [0.1 * draw(seed, *shape) for shape in shapes] + factors
    for keywords in OPTIONS.values():

        def ours(x, w, u, b, h0, *factors, keywords=keywords):
            return it.goru(it.Kronecker(factors), x, w, u, b, h0=h0, **keywords)

        theirs = by_gru("kronecker", keywords)
        same(ours(*at), theirs(*at), "states")
        same(gradients(ours, at), gradients(theirs, at), "gradient")


# ---------------------------------------------------------------- derivatives


@each_transition
@each_option
def test_first_and_second_derivatives(option, name, seed):
    every_order(*problem(seed, name, **OPTIONS[option]))


@pytest.mark.parametrize("option", ["before", "after"])
def test_derivatives_through_modrelu(option, seed):
    every_order(*problem(seed, "cayley", activation="modrelu", **OPTIONS[option]))


@each_transition
@each_option
def test_vmap_equals_a_loop(option, name, seed):
    every_member(*problem(seed, name, **OPTIONS[option]))


@each_transition
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_agree_with_autograd(transform, name, seed):
    transform_agrees(transform, *problem(seed, name), 5)


@each_transition
@pytest.mark.parametrize("option", ["before", "after with lengths"])
def test_compiled_in_one_piece(option, name, seed):
    same_when_compiled(*problem(seed, name, **OPTIONS[option]))


def test_dual_numbers_of_a_transition(seed):
    f, at = problem(seed, "kronecker")
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(at[5], torch.ones_like(at[5]))
        found = forward_ad.unpack_dual(score(f(*at[:5], dual, *at[6:]))).tangent
    same(found, gradients(f, at)[5].sum())


# ---------------------------------------------------------------- memory, threads, what is wanted


@pytest.mark.alone
@pytest.mark.parametrize("name", ["householder", "kronecker"])
@pytest.mark.parametrize("option", ["before", "after"])
def test_threads_and_layouts_change_no_bit(option, name, seed, threads):  # noqa: ARG001  the fixture restores the budget
    derivatives.threads_and_layouts_change_no_bit(*problem(seed, name, np.float32, (96, 30, 32, 5), **OPTIONS[option]))


@each_transition
@pytest.mark.parametrize("option", ["before", "after"])
def test_what_is_not_asked_for_is_not_computed(option, name, seed):
    derivatives.what_is_not_asked_for_is_not_computed(*problem(seed, name, **OPTIONS[option]))


# ---------------------------------------------------------------- refusals

OP = it.Householder(torch.ones(4, 1))
X, W, U, B = (torch.zeros(s) for s in ((3, 2, 2), (2, 4, 4), (3, 4, 2), (3, 4)))
MISTAKES = {
    "a matrix": (lambda: it.goru(torch.eye(4), X, W, U, B), TypeError, "transition must be an operator"),
    "nothing": (lambda: it.goru(None, X, W, U, B), TypeError, "transition must be an operator"),
    "three gates": (
        lambda: it.goru(OP, X, torch.zeros(3, 4, 4), U, B),
        ValueError,
        r"w must have shape \(2, n, n\) .* of z and r",
    ),
    "another size": (
        lambda: it.goru(it.Householder(torch.ones(3, 1)), X, W, U, B),
        ValueError,
        r"transition must have shape \(n, n\) = \(4, 4\)",
    ),
    "a stack": (lambda: it.goru(it.Householder(torch.ones(2, 4, 1)), X, W, U, B), ValueError, "transition must be one"),
    "no square": (lambda: it.goru(it.Dense(torch.ones(4, 3)), X, W, U, B), ValueError, "transition must be square"),
    "complex": (lambda: it.goru(OP.to(torch.complex64), X, W, U, B), ValueError, "transition must be real"),
    "another precision": (lambda: it.goru(OP.to(torch.float64), X, W, U, B), TypeError, "transition is float64"),
    "u of two gates": (lambda: it.goru(OP, X, W, U[:2], B), ValueError, "u must have shape"),
    "an unknown reset": (lambda: it.goru(OP, X, W, U, B, reset="never"), ValueError, "reset must be 'before' or"),
    "an unknown activation": (lambda: it.goru(OP, X, W, U, B, activation="sine"), ValueError, "activation must be one"),
    "no bias for modReLU": (lambda: it.goru(OP, X, W, U, B, activation="modrelu"), ValueError, "activation_bias must"),
    "a hidden bias": (lambda: it.goru(OP, X, W, U, B, hidden_bias=B[0]), TypeError, "hidden_bias"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_refusals(mistake):
    call, error, words = MISTAKES[mistake]
    with pytest.raises(error, match=words):
        call()
