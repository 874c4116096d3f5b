"""`it.goru`: a transition that is applied by its factors, and the refusals of a transition."""

from functools import reduce

import pytest
import torch

import isometry.torch as it
from derivatives import draw, gradients, same
from isometry import _core


@pytest.mark.parametrize("reset", ["before", "after"])
def test_an_operator_on_rows_is_applied_step_by_step(reset, seed):
    """The GRU with its matrix, for a product of many factors, of which the matrix is never formed."""
    factors = [draw(seed, 2, 2) for _ in range(7)]
    route = lambda stem, *arrays: _core.recurrence_route(stem, arrays, 3, 2, True)
    assert route("kronecker", *[t.numpy() for t in factors]) == "factored"
    assert route("householder", draw(seed, 32, 2).numpy(), None, None) == "dense"
    shapes = [(3, 2, 3), (2, 128, 128), (3, 128, 3), (3, 128), (2, 128)]
    at = [0.1 * draw(seed, *shape) for shape in shapes] + factors

    def ours(x, w, u, b, h0, *factors):
        return it.goru(it.Kronecker(factors), x, w, u, b, h0=h0, reset=reset, lengths=[1, 3])

    def theirs(x, w, u, b, h0, *factors):
        w = torch.cat((w, reduce(torch.kron, factors)[None]))
        return it.gru(x, w, u, b, h0=h0, reset=reset, lengths=[1, 3])

    same(ours(*at), theirs(*at), "states")
    same(gradients(ours, at), gradients(theirs, at), "gradient")


OP, W = it.Householder(torch.ones(4, 1)), torch.zeros(2, 4, 4)
#: Transitions, and the matrices of the gates.
MISTAKES = [
    (torch.eye(4), W, TypeError, "transition must be an operator"),
    (None, W, TypeError, "transition must be an operator"),
    (OP, torch.zeros(3, 4, 4), ValueError, r"w must have shape \(2, n, n\) .* of z and r"),
    (it.Householder(torch.ones(3, 1)), W, ValueError, r"transition must have shape \(n, n\) = \(4, 4\)"),
    (it.Householder(torch.ones(2, 4, 1)), W, ValueError, "transition must be one"),
    (it.Dense(torch.ones(4, 3)), W, ValueError, "transition must be square"),
    (OP.to(torch.complex64), W, ValueError, "transition must be real"),
    (OP.to(torch.float64), W, TypeError, "transition is float64"),
]


def test_refusals():
    for transition, w, error, words in MISTAKES:
        with pytest.raises(error, match=words):
            it.goru(transition, torch.zeros(3, 2, 2), w, torch.zeros(3, 4, 2), torch.zeros(3, 4))
