"""`it.nn.GORU`: its transitions, refusals."""

import pytest
import torch

import isometry.torch as it
import tolerance
from layers import D, N, build, close

#: transition -> W of its parameters and buffers.
TRANSITIONS = {
    "mesh": lambda layer: it.Mesh(layer.theta_l0, n=N, layers=2),
    "householder": lambda layer: it.Householder.from_trapezoid(layer.vectors_l0),
    "cayley": lambda layer: it.Cayley(
        layer.upper_l0, signs=torch.tensor([1.0] * (N // 2) + [-1.0] * (N // 2)).double()
    ),
    "exponential": lambda layer: it.Exponential(layer.upper_l0),
}
each_transition = pytest.mark.parametrize("transition", TRANSITIONS)


def goru(*args, **keywords):
    return build("goru", *args, **keywords)


@each_transition
def test_the_transition(transition):
    """W is that of the parameters, orthogonal and drawn from the seed."""
    layer = goru(transition=transition)
    close(layer.recurrent_matrix(), TRANSITIONS[transition](layer).matrix(), "W")
    assert it.orthogonality_error(layer.recurrent_matrix()) < tolerance.UNITARITY
    trained = [p for name, p in layer.named_parameters() if name.split("_")[0] in ("theta", "vectors", "upper")]
    assert [id(p) for p in layer.recurrent_parameters()] == [id(p) for p in trained]
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        layer.reset_parameters()
        drawn.append(layer.recurrent_matrix().detach())
    assert torch.equal(*drawn[:2]) and not torch.equal(*drawn[1:])


def test_capacity_is_the_number_of_layers_of_the_mesh():
    layer = it.nn.GORU(D, 8, capacity=5)
    assert layer.theta_l0.shape == (it.Mesh.random(8, layers=5).theta.shape[0],)
    assert layer.recurrent_matrix()[0].count_nonzero() > it.nn.GORU(D, 8).recurrent_matrix()[0].count_nonzero()


def test_representation_and_refusals():
    text = "GORU(3, 6, transition='cayley', reset='after', nonlinearity='modrelu', capacity=None)"
    assert repr(it.nn.GORU(D, N, transition="cayley", reset="after")) == text
    for keywords, error, words in (
        ({"transition": "fourier"}, ValueError, "transition must be 'mesh' or .* not 'fourier'"),
        ({"capacity": 0}, ValueError, "capacity must be"),
        (
            {"transition": "cayley", "capacity": 5},
            ValueError,
            "capacity must be None with transition 'cayley', .* not 5",
        ),
    ):
        with pytest.raises(error, match=words):
            it.nn.GORU(D, N, **keywords)
