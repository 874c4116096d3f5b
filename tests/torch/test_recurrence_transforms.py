"""`it.recurrence` under vmap with lengths, compiled for any number of steps, and with transforms inside and outside."""

import pytest
import torch

from derivatives import TRANSFORMS, compiled, draw, of_one, same, same_dual_numbers_when_compiled_before
from laws.cells.test_derivatives import function
from registry.cells import CELLS, CellCase
from support.cells import TorchCell

each_transform = pytest.mark.parametrize("transform", TRANSFORMS)


def problem(rng, variant="by W", **options):
    """The states as a function of the transition's argument, x, V, h0, b and modReLU's bias, and a point."""
    return function(TorchCell(CellCase(CELLS["recurrence"], variant)), rng, "modrelu", **options)


@pytest.mark.parametrize("variant", ["by factors", "by W"])
def test_a_length_of_all_members(variant, seed):
    """The length of one sequence serves all that vmap runs over."""
    one, (a, x, v, h0, *biases) = problem(seed, variant, lengths=[1])
    step = lambda x, h0: one(a, x.unsqueeze(1), v, h0.unsqueeze(0), *biases)[:, 0]
    together = torch.func.vmap(step, (1, 0), 1)(x, h0)
    same(together, torch.stack([step(x[:, b], h0[b]) for b in range(x.shape[1])], 1), "states")


def test_compiled_for_any_number_of_steps(seed):
    """New lengths of the sequence neither break the graph nor unroll the loop."""
    f, (a, x, *rest) = problem(seed)
    fast = compiled(lambda x: f(a, x, *rest))
    for steps in (5, 7, 9):
        x = draw(seed, steps, *x.shape[1:])
        same(fast(x), f(a, x, *rest), f"{steps} steps")


@each_transform
def test_a_compiled_transform(transform, seed):
    """The transform inside the compiled function, without a graph break."""
    f, at = problem(seed)
    whole = lambda t: TRANSFORMS[transform](of_one(f, at, 0), t)
    same(compiled(whole)(at[0]), whole(at[0]))


@each_transform
def test_a_transform_of_a_compiled_function(transform, seed):
    """The compiled function inside the transform."""
    f, at = problem(seed)
    loss = of_one(f, at, 0)
    same(TRANSFORMS[transform](compiled(loss, fullgraph=False), at[0]), TRANSFORMS[transform](loss, at[0]))


def test_dual_numbers_through_a_function_compiled_before_of_what_is_trained(seed):
    same_dual_numbers_when_compiled_before(*problem(seed), 0, trained=True)
