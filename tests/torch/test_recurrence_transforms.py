"""The recurrent function in every differentiation mode of torch, on both routes, with lengths, in both directions."""

import numpy as np
import pytest
import torch

import isometry.torch as it
from derivatives import (
    TRANSFORMS,
    compiled,
    draw,
    every_member,
    every_order,
    gradients,
    same,
    same_dual_numbers_when_compiled_before,
    same_when_compiled,
    score,
)
from isometry import _core

N, STEPS, BATCH, FEATURES = 4, 3, 2, 2
ROUTES = {"factored": 1, "dense": 3}  # by the number of reflections
OPTIONS = {
    "plain": {},
    "lengths": {"lengths": [3, 2]},
    "unsorted lengths": {"lengths": [1, 3]},
    "reverse": {"reverse": True},
    "reverse with lengths": {"reverse": True, "lengths": [3, 2]},
    "activation on the input": {"activation_on": "input"},
    "everything": {"reverse": True, "lengths": [2, 3], "activation_on": "input"},
}
each_route = pytest.mark.parametrize("route", ROUTES)
each_option = pytest.mark.parametrize("option", OPTIONS)
# Single options are tested in the long run; the short one tests all of them at once.
each_main_option = pytest.mark.parametrize(
    "option",
    [
        option if option in ("plain", "lengths", "everything") else pytest.param(option, marks=pytest.mark.long)
        for option in OPTIONS
    ],
)
each_length = pytest.mark.parametrize("option", [name for name, given in OPTIONS.items() if "lengths" in given])
each_transform = pytest.mark.parametrize("transform", TRANSFORMS)


def problem(rng, route="dense", name="modrelu", dtype=np.float64, **keywords):
    """The states as a function of vectors, x, V, h0, b and the activation's bias, and a point."""
    reflections = ROUTES[route]
    vectors = np.ones((N, reflections), dtype)
    assert _core.recurrence_route("householder", (vectors, None, None), STEPS, BATCH) == route
    at = [
        draw(rng, N, reflections, dtype=dtype),
        draw(rng, STEPS, BATCH, FEATURES),
        draw(rng, N, FEATURES, dtype=dtype),
        draw(rng, BATCH, N, dtype=dtype),
        draw(rng, N, dtype=dtype),
    ]
    units = {"modrelu": N, "modrelu_realrep": N // 2}.get(name)
    if units is not None:
        at.append(0.1 + draw(rng, units).abs())

    def f(vectors, x, v, h0, bias, activation_bias=None):
        given = {"h0": h0, "bias": bias, "activation": name, "activation_bias": activation_bias, **keywords}
        return it.recurrence(it.Householder(vectors), x, v, **given)

    return f, at


def of_vectors(f, at):
    """The score as a function of the vectors alone."""
    return lambda vectors: score(f(vectors, *at[1:]))


# ---------------------------------------------------------------- derivatives


@each_route
@each_main_option
def test_first_and_second_derivatives(option, route, seed):
    """Every order and direction of complex states."""
    every_order(*problem(seed, route, dtype=np.complex128, **OPTIONS[option]))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128], ids=["real", "complex"])
@pytest.mark.parametrize("name", ["tanh", "leaky_relu", "oplu"])
def test_derivatives_through_activations(name, dtype, seed):
    """Every order and direction through activations on real and imaginary parts."""
    every_order(*problem(seed, "factored", name, dtype, **OPTIONS["lengths"]))


def test_derivatives_through_modrelu_of_pairs(seed):
    """Every order and direction of real states that represent complex ones."""
    every_order(*problem(seed, "factored", "modrelu_realrep", **OPTIONS["everything"]))


@each_route
@each_option
def test_vmap_equals_a_loop(option, route, seed):
    """Over every argument alone, and over all of them."""
    every_member(*problem(seed, route, dtype=np.complex128, **OPTIONS[option]))


@each_route
@each_option
def test_transforms_agree_with_autograd(option, route, seed):
    """The primal value of jvp, grad, and vmap of grad are those of plain calls."""
    f, at = problem(seed, route, **OPTIONS[option])
    way = torch.ones_like(at[0])
    states, tangent = torch.func.jvp(lambda vectors: f(vectors, *at[1:]), (at[0],), (way,))
    same(states, f(*at), "states")
    gradient = gradients(f, at)[0]
    same(TRANSFORMS["grad"](of_vectors(f, at), at[0]), gradient, "grad")
    same(TRANSFORMS["vmap of grad"](of_vectors(f, at), at[0])[0], gradient, "vmap of grad")
    same(TRANSFORMS["jvp"](of_vectors(f, at), at[0]), (gradient * way).sum(), "jvp")
    assert tangent.shape == states.shape


# ---------------------------------------------------------------- lengths


@each_route
@each_length
def test_a_sequence_does_not_see_its_neighbours(option, route, seed):
    """Each sequence, cut to its length, gives the same states alone; past its end they are zero."""
    keywords = OPTIONS[option]
    f, (vectors, x, v, h0, *biases) = problem(seed, route, **keywords)
    states = f(vectors, x, v, h0, *biases)
    options = {k: value for k, value in keywords.items() if k != "lengths"}
    for b, length in enumerate(keywords["lengths"]):
        assert not states[length:, b].any()
        one, _ = problem(seed, route, **options)
        alone = one(vectors, x[:length, b : b + 1], v, h0[b : b + 1], *biases)
        same(alone[:, 0], states[:length, b], f"sequence {b}")


@each_route
@each_length
@pytest.mark.parametrize("create_graph", [False, True], ids=["kernel", "formula"])
def test_padding_reaches_nothing(option, route, create_graph, seed):
    """NaN past the end of a sequence changes no state and no gradient."""
    f, at = problem(seed, route, **OPTIONS[option])
    padded = [at[0], at[1].clone(), *at[2:]]
    for b, length in enumerate(OPTIONS[option]["lengths"]):
        padded[1][length:, b] = float("nan")
    same(f(*padded), f(*at), "states")
    same(gradients(f, padded, create_graph=create_graph), gradients(f, at), "gradient")


@each_route
def test_a_length_of_all_members(route, seed):
    """The length of one sequence serves all that vmap runs over."""
    one, (vectors, x, v, h0, *biases) = problem(seed, route, lengths=[1])
    step = lambda x, h0: one(vectors, x.unsqueeze(1), v, h0.unsqueeze(0), *biases)[:, 0]
    together = torch.func.vmap(step, (1, 0), 1)(x, h0)
    same(together, torch.stack([step(x[:, b], h0[b]) for b in range(x.shape[1])], 1), "states")


# ---------------------------------------------------------------- compiled


@each_main_option
def test_compiled_in_one_piece(option, seed):
    """The loop over the steps is one operator of the graph."""
    same_when_compiled(*problem(seed, **OPTIONS[option]))


def test_compiled_with_lengths_in_a_tensor(seed):
    """Their order is computed in the graph."""
    same_when_compiled(*problem(seed, lengths=torch.tensor([1, 3]), reverse=True))


def test_compiled_for_any_number_of_steps(seed):
    """New lengths of the sequence neither break the graph nor unroll the loop."""
    f, (vectors, _, *rest) = problem(seed)
    fast = compiled(lambda x: f(vectors, x, *rest))
    for steps in (5, 7, 9):
        x = draw(seed, steps, BATCH, FEATURES)
        same(fast(x), f(vectors, x, *rest), f"{steps} steps")


@each_transform
def test_a_compiled_transform(transform, seed):
    """The transform inside the compiled function, without a graph break."""
    f, at = problem(seed)
    whole = lambda vectors: TRANSFORMS[transform](of_vectors(f, at), vectors)
    same(compiled(whole)(at[0]), whole(at[0]))


@each_transform
def test_a_transform_of_a_compiled_function(transform, seed):
    """The compiled function inside the transform."""
    f, at = problem(seed)
    loss = of_vectors(f, at)
    same(TRANSFORMS[transform](compiled(loss, fullgraph=False), at[0]), TRANSFORMS[transform](loss, at[0]))


@pytest.mark.parametrize("trained", [False, True], ids=["constant", "trained"])
def test_dual_numbers_through_a_function_compiled_before(trained, seed):
    same_dual_numbers_when_compiled_before(*problem(seed), 0, trained)
