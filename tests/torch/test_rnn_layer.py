"""it.nn.RNN: any operator as W."""

import copy
import pickle

import pytest
import torch

import isometry.torch as it
from layers import B, D, N, T, draw


class Shift(it.Operator):
    """A class of one's own."""

    def __init__(self, size):
        super().__init__(shape=(N, N), dtype=size.dtype)
        self.size = size

    def matrix(self, *, backend=None, check_finite=True):  # noqa: ARG002
        return torch.eye(N, dtype=self.size.dtype).roll(1, 0) * self.size


def test_modrelu_has_its_own_bias_alone():
    layer = it.nn.RNN(D, N, nonlinearity="modrelu")
    assert {"activation_bias_l0", "weight_ih_l0", "weight_hh_l0"} == set(layer.state_dict())


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
    """In every layer and direction; W is that of the operator, and the recurrence that of the function."""
    layer = it.nn.RNN(D, N, 2, bidirectional=True, transition=make, dtype=torch.float64)
    names = [name for name, _ in layer.named_parameters() if name.startswith("transition")]
    assert len(names) == len(list(layer.recurrent_parameters())) == 4
    x = draw(T, B, D)
    y, _ = layer(x)
    y.abs().square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in layer.parameters())
    w = layer.recurrent_matrix(1, reverse=True)
    assert torch.allclose(w.mH @ w, torch.eye(N, dtype=w.dtype), atol=1e-12)
    one = it.nn.RNN(D, N, transition=make, dtype=torch.float64)
    bias = one._bias("_l0")
    law = {"input_weight": one._value("weight_ih_l0"), "bias": bias, "activation": "tanh"}
    torch.testing.assert_close(one(x)[0], it.recurrence(it.Dense(one.recurrent_matrix()), x, **law))


def test_an_operator_of_ones_own_is_held():
    layer = it.nn.RNN(D, N, transition=lambda _: Shift(torch.tensor(0.5)))
    assert not list(layer.recurrent_parameters())
    assert torch.equal(layer.recurrent_matrix(), torch.eye(N).roll(1, 0) / 2)
    assert layer(torch.randn(T, B, D))[0].shape == (T, B, N)


class Drawn(torch.nn.Module):
    """Makes operators from a parameter of its own."""

    def __init__(self, size):
        super().__init__()
        self.scale, self.upper = (
            torch.nn.Parameter(torch.tensor(0.3)),
            torch.nn.Parameter(torch.ones(size * (size - 1) // 2)),
        )

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


def test_refusals():
    with pytest.raises(TypeError, match="transition must be a function"):
        it.nn.RNN(D, N, transition=it.Cayley.random(N))
    with pytest.raises(TypeError, match=r"transition\(n\) must be an operator"):
        it.nn.RNN(D, N, transition=lambda n: torch.eye(n))
    with pytest.raises(ValueError, match="hidden_size"):
        it.nn.RNN(D, N, transition=lambda n: it.Cayley.random(n + 1))
    with pytest.raises(ValueError, match="reversible"):
        it.nn.RNN(D, N, checkpoint="reversible")
    with pytest.raises(ValueError, match="nonlinearity"):
        it.nn.RNN(D, N, nonlinearity="gelu")
