"""Derivatives of every order and direction agree with differences; vmap, transforms and graphs with plain calls."""

import numpy as np
import pytest
import torch

import derivatives
from derivatives import TRANSFORMS, every_member, every_order, gradients, same, same_when_compiled, transform_agrees
from registry.cells import CASES, each_cell, each_plain_cell
from support.cells import TorchCell

pytestmark = pytest.mark.cpu
OPTIONS = {
    "plain": {},
    "lengths": {"lengths": [3, 2]},
    "unsorted lengths": {"lengths": [1, 3]},
    "reverse": {"reverse": True},
    "reverse with lengths": {"reverse": True, "lengths": [2, 3]},
    "the last state": {"output": "last", "lengths": [3, 2]},
    "marks": {"starts": np.array([[0, 0], [1, 0], [0, 1]], bool), "lengths": [3, 2]},
    "marks in reverse": {"starts": np.array([[1, 0], [0, 1], [0, 1]], bool), "reverse": True, "lengths": [3, 2]},
}
OPTIONS |= {f"{name}, a state for each": {**OPTIONS[name], "marked": "each"} for name in ("marks", "marks in reverse")}
MAIN = ("plain", "reverse with lengths", "marks, a state for each")  # these stand for all in the short run
each_option = pytest.mark.parametrize("option", OPTIONS)
each_main_option = pytest.mark.parametrize(
    "option", [option if option in MAIN else pytest.param(option, marks=pytest.mark.long) for option in OPTIONS]
)


def function(subject, rng, activation="tanh", sizes=None, marked=True, **options):
    """The results as a function of tensors, and the point."""
    marked = marked if "starts" in options else False
    arrays = subject.case.draw(rng, **(sizes or {}), activation=activation, marked=marked)
    return subject.function(arrays, **options, **subject.case.options(activation))


def orders(subject, rng, activation="tanh", **options):
    every_order(*function(subject, rng, activation, **options))


def formula(subject, rng, activation="tanh", **options):
    """The gradients by torch operations are those of the kernels."""
    f, at = function(subject, rng, activation, {"n": 6}, **options)
    same(gradients(f, at, create_graph=True), gradients(f, at), "gradient")


def members(subject, rng, **options):
    every_member(*function(subject, rng, **options))


def compiled(subject, rng, **options):
    """The loop over the steps is one operator of the graph."""
    case = subject.case
    name = "modrelu" if "modrelu" in case.cell.activations else "tanh"
    same_when_compiled(*function(subject, rng, name, **options))


def unwanted(subject, rng):
    derivatives.what_is_not_asked_for_is_not_computed(*function(subject, rng))


@each_main_option
@each_cell
def test_every_order(cell, option, seed):
    orders(TorchCell(cell), seed, **OPTIONS[option])


@each_cell
@pytest.mark.slow
def test_every_order_through_activations(cell, seed):
    names = [name for name in cell.activations() if name not in ("tanh", "relu", "identity")]
    for k, name in enumerate(names if cell.plain else names[-1:]):
        orders(TorchCell(cell), seed, name, **OPTIONS["lengths" if k % 2 else "plain"])


@each_option
@each_cell
def test_kernels_are_the_formula(cell, option, seed):
    for name in cell.activations():
        formula(TorchCell(cell), seed, name, **OPTIONS[option])


@each_option
@each_cell
def test_vmap_equals_a_loop(cell, option, seed):
    members(TorchCell(cell), seed, **OPTIONS[option])


@pytest.mark.parametrize("transform", TRANSFORMS)
@each_cell
def test_transforms_agree_with_autograd(cell, transform, seed):
    """Over the first array of weights, or of the transition."""
    f, at = function(TorchCell(cell), seed)
    transform_agrees(transform, f, at, 0 if cell.own else 1)


@each_cell
@pytest.mark.slow
def test_compiled_in_one_piece(cell, seed):
    compiled(TorchCell(cell), seed, **OPTIONS["reverse with lengths"])


@pytest.mark.parametrize("option", ["plain", "marks", "marks, a state for each", "the last state"])
@each_plain_cell
def test_compiled_with_other_options(cell, option, seed):
    compiled(TorchCell(cell), seed, **OPTIONS[option])


@each_plain_cell
@pytest.mark.slow
def test_dual_numbers_through_a_function_compiled_before(cell, seed):
    derivatives.same_dual_numbers_when_compiled_before(*function(TorchCell(cell), seed), 0 if cell.own else 1)


@each_cell
def test_what_is_not_asked_for_is_not_computed(cell, seed):
    unwanted(TorchCell(cell), seed)


def test_lengths_in_a_tensor(seed):
    """Their order is computed in the graph."""
    compiled(TorchCell(CASES[0]), seed, lengths=torch.tensor([1, 3]), reverse=True)


def saved_by(states):
    """What forward has saved for backward besides states: the tensor of four axes, in an ensemble of five."""
    nodes = [states.grad_fn]
    while nodes:
        node = nodes.pop()
        if axes := {"RecurrenceBackward": 4, "ForwardBackward": 5}.get(type(node).__name__):
            return [t for t in node.saved_tensors if t is not None and t.dim() == axes]
        nodes += [other for other, _ in node.next_functions if other is not None]
    raise AssertionError("no recurrence")


def read(subject, rng, steps=3, batch=2, n=4):
    """Gradients depend on all that is saved, which is so many numbers of every unit."""
    f, at = function(subject, rng, sizes={"n": n, "steps": steps, "batch": batch})
    leaves = [t.requires_grad_() for t in at]
    for t in saved_by(f(*leaves)):
        assert t.shape[1:] == (steps, batch, n), t.shape
        for at_once in np.ndindex(t.shape[:-1]):
            states = f(*leaves)
            saved_by(states)[0].data[at_once] = torch.nan
            grads = torch.autograd.grad(states.sum(), leaves, allow_unused=True)
            assert any(g is not None and g.isnan().any() for g in grads), f"{at_once} is not read"


@each_cell
def test_all_that_is_saved_is_read(cell, seed):
    read(TorchCell(cell), seed)
