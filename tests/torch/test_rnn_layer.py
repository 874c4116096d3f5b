"""it.nn.RNN: any operator as W."""

import copy
import pickle

import pytest
import torch

import isometry.torch as it
from layers import B, D, N, T, draw
from registry.cells.goru import Shear


@pytest.mark.parametrize(
    "make",
    [
        it.Cayley.random,
        lambda n: it.Householder.random(n, 2, dtype=torch.float64),
        lambda n: it.Cayley.random(n).H,
        lambda n: it.Circulant.random(n, dtype=torch.complex128),
    ],
    ids=["cayley", "householder", "adjoint", "complex"],
)
def test_what_the_operator_trains_is_trained(make):
    """In every layer and direction; W is that of the operator."""
    layer = it.nn.RNN(D, N, 2, bidirectional=True, transition=make, dtype=torch.float64)
    names = [name for name, _ in layer.named_parameters() if name.startswith("transition")]
    assert len(names) == len(list(layer.recurrent_parameters())) == 4
    layer(draw(T, B, D))[0].abs().square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in layer.parameters())
    w = layer.recurrent_matrix(1, reverse=True)
    assert torch.allclose(w.mH @ w, torch.eye(N, dtype=w.dtype), atol=1e-12)


def test_an_operator_of_ones_own_is_held():
    layer = it.nn.RNN(D, N, transition=lambda n: Shear(torch.full((n - 1,), 0.5)))
    assert not list(layer.recurrent_parameters())
    assert torch.equal(layer.recurrent_matrix(), torch.eye(N) + torch.eye(N).roll(1, 1).triu(1) / 2)
    assert layer(torch.randn(T, B, D))[0].shape == (T, B, N)


class Drawn(torch.nn.Module):
    """Makes operators from a parameter of its own."""

    def __init__(self, size):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(0.3))
        self.upper = torch.nn.Parameter(torch.ones(size * (size - 1) // 2))

    def forward(self, size):
        return it.Cayley(self.scale * self.upper if size == N else self.upper)


@pytest.mark.parametrize("heads", [1, 2])
def test_a_module_as_a_transition(heads):
    """It is called as a function is: its parameters are not the layer's, those of its operators are."""
    module = Drawn(N // heads)
    layer, twin = (it.nn.RNN(D, N, 2, heads=heads, transition=make) for make in (module, lambda n: module(n)))
    assert layer.transition is module and repr(layer) == repr(twin)
    twin.load_state_dict(layer.state_dict())
    for other in (layer, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert [name for name, _ in other.named_parameters()] == [name for name, _ in twin.named_parameters()]
        x = torch.randn(T, B, D)
        assert torch.equal(other(x)[0], twin(x)[0])
        other.reset_parameters()
    before = module.scale.detach().clone()
    torch.optim.SGD(layer.parameters(), 0.1).step(lambda: layer(x)[0].sum().backward())
    assert torch.equal(module.scale, before) and module.scale.grad is None
