"""torch.fx: modules are nodes of a traced graph, as those of torch.nn; other calls say how (docs/limits.md)."""

import copy
import pickle

import pytest
import torch
from torch.fx import Proxy, symbolic_trace

import isometry.torch as it
from layers import FORMS, HEADED, KINDS, B, D, N, T, draw, formed
from orthogonal_weights import MAPS
from test_odd_arguments import CALLS


class Model(torch.nn.Module):
    """A module between two operations; `use` is how it is called."""

    def __init__(self, inner, use):
        super().__init__()
        self.inner, self.use = inner, use

    def forward(self, x):
        return self.use(self.inner, 2 * x) + 1


def plain(module, x):
    return module(x)


def unpacked(layer, x):
    output, _ = layer(x)
    return output


def hooked(module):
    """With a hook, which runs once."""
    module.register_forward_pre_hook(lambda _, x: (3 * x[0],))
    return module


def linear():
    return torch.nn.Linear(D, N, dtype=torch.float64)


def orthogonal(name):
    return it.parametrizations.orthogonal(linear(), orthogonal_map=name)


#: name -> what makes a module, and how it is called.
MODULES = {form: (lambda form=form: formed(form), unpacked) for form in [*KINDS, *FORMS, *HEADED]}
MODULES |= {
    "keywords": (lambda: formed("ornn"), lambda layer, x: layer(input=x, hx=x.new_zeros(1, B, N))[0]),
    "cell": (lambda: it.nn.from_torch(torch.nn.GRUCell(D, N).double(), cells=True), lambda cell, x: cell(x[0])),
    "operator": (lambda: it.nn.OperatorModule(it.Cayley.random(D, dtype=torch.float64)), plain),
    "product": (lambda: it.nn.OperatorModule(it.Dense(torch.eye(D)) @ it.Householder.random(D)).double(), plain),
    "real state": (it.nn.RealState, plain),
    "OFT": (lambda: it.adapters.OFT(linear(), 3), plain),
    "HRA": (lambda: it.adapters.HRA(linear(), 2), plain),
    "hooks": (lambda: hooked(it.adapters.HRA(linear(), 2)), plain),
    **{f"{name}, a layer": (lambda name=name: orthogonal(name), plain) for name in MAPS},
    **{
        f"{name}, a weight": (lambda name=name: orthogonal(name), lambda layer, x: x @ layer.weight.mT) for name in MAPS
    },
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_nodes(name):
    """The values of the model, to the last bit, also of copies, and its parameters."""
    make, use = MODULES[name]
    model, x = Model(make(), use), draw(T, B, D)
    graph, expected = symbolic_trace(model), model(x)
    assert torch.equal(graph(x), expected) and torch.equal(copy.deepcopy(graph)(x), expected)
    if name != "hooks" and "," not in name:  # functions without a name, and parametrizations, are not pickled
        assert torch.equal(pickle.loads(pickle.dumps(graph))(x), expected)
    own = list(graph.named_parameters())
    assert own or name == "real state"
    assert all(p is model.get_parameter(key) for key, p in own)


#: Functions; calls of modules are nodes.
WITH_TENSORS = [
    name for name, (_, given) in CALLS.items() if "a call" not in name and any(map(torch.is_tensor, given.values()))
]
READERS = {
    "step": (lambda: it.nn.GRU(D, N), lambda layer, x: layer.step(x)),
    "recurrent matrix": (lambda: it.nn.ORNN(D, N), lambda layer, x: layer.recurrent_matrix() @ x),
    "operator": (lambda: it.nn.OperatorModule(it.Cayley.random(D)), lambda module, x: module.operator()(x)),
    "matrix": (lambda: it.nn.OperatorModule(it.Cayley.random(D).H), lambda module, x: module.matrix() @ x),
    "weight": (lambda: it.adapters.OFT(linear(), 3), lambda adapter, x: x @ adapter.weight),
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_TENSORS)
def test_functions_say_how(name):
    (function, given), graph = CALLS[name], torch.fx.Graph()
    proxy = Proxy(graph.placeholder("x"), torch.fx.proxy.GraphAppendingTracer(graph))
    with pytest.raises(TypeError, match=r"not Proxy.*torch\.fx\.wrap"):
        function(**{key: proxy if torch.is_tensor(value) else value for key, value in given.items()})


@pytest.mark.parametrize("name", READERS)
def test_other_methods_say_how(name):
    make, use = READERS[name]
    with pytest.raises(TypeError, match=r"torch\.fx\.wrap"):
        symbolic_trace(Model(make(), use))
