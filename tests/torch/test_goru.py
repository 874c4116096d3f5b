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
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_refusals(mistake):
    call, error, words = MISTAKES[mistake]
    with pytest.raises(error, match=words):
        call()
