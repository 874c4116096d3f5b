"""torch.fx and other programs of torch: modules are nodes of a graph, other calls say how (docs/limits.md)."""

import copy
import pickle
import warnings

import pytest
import torch
from torch.fx import Proxy, symbolic_trace

import isometry.torch as it
from layers import FORMS, HEADED, KINDS, NAMES, B, D, N, T, draw, formed
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


PLAIN = [name for name in NAMES if name in ("RNN", "GRU", "LSTM")]
each = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize("name", PLAIN)
def test_arguments_in_torchs_order(name):
    """As many as torch takes, except proj_size, with other values than the defaults."""
    order = ["num_layers", *(["nonlinearity"] if name == "RNN" else []), "bias", "batch_first", "dropout"]
    values = {"num_layers": 2, "nonlinearity": "relu", "bias": False, "batch_first": True, "dropout": 0.5}
    given = [values[key] for key in order] + [True]
    theirs, ours = getattr(torch.nn, name)(D, N, *given), getattr(it.nn, name)(D, N, *given)
    for key in (*order, "bidirectional"):
        assert getattr(ours, key) == getattr(theirs, key) == {**values, "bidirectional": True}[key]
    if name != "GRU":  # whose weights have another shape
        ours.load_state_dict(theirs.state_dict())
        torch.testing.assert_close(ours.eval()(draw(B, T, D).float())[0], theirs.eval()(draw(B, T, D).float())[0])


@each
def test_constructors_name_the_class_that_was_written(name):
    kind = getattr(it.nn, name)
    mine = type("Mine", (kind,), {})
    with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) got an unexpected keyword argument 'units'"):
        kind(D, N, units=3)
    with pytest.raises(
        TypeError, match=rf"^{name}\.__init__\(\) missing 1 required positional argument: 'hidden_size'"
    ):
        kind(D)
    with pytest.raises(TypeError, match=r"^Mine\.__init__\(\) missing 2 required"):
        mine()
    with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) takes from 3 to \d positional"):
        kind(*range(1, 15))


@each
def test_a_warning_of_the_constructor_names_the_line(name):
    keywords = {"heads": 2} if name == "DeltaProduct" else {}
    for kind in (getattr(it.nn, name), type("Mine", (getattr(it.nn, name),), {})):
        with pytest.warns(UserWarning, match="dropout option") as found:
            kind(D, 8, dropout=0.5, **keywords)
        assert found[0].filename == __file__


@each
def test_script_names_what_to_do(name):
    model = torch.nn.Sequential(torch.nn.Linear(D, D), getattr(it.nn, name)(D, 8))
    for module in (model, model[1]):
        with (
            warnings.catch_warnings(),
            pytest.raises(
                NotImplementedError, match=rf"^{name} cannot be compiled by torch\.jit\.script: .*onnx\.export"
            ),
        ):
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.jit.script(module)


@pytest.mark.extra
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", ["GRU", "ScoRNN"])
def test_onnx_names_what_to_do(name):
    with pytest.raises(Exception, match=r"call isometry\.integrations\.onnx\.export"):
        torch.onnx.export(getattr(it.nn, name)(D, N), (draw(T, B, D).float(),), dynamo=True, verbose=False)


def test_marks_of_a_wrong_shape_name_the_right_one():
    for first in (False, True):
        layer, x = it.nn.GRU(D, N, batch_first=first).double(), draw(B, T, D) if first else draw(T, B, D)
        right = rf"\({B}, {T}\)" if first else rf"\({T}, {B}\)"
        with pytest.raises(ValueError, match=rf"^starts must .*, {right}, not \({T + 1}, {B}\)"):
            layer(x, starts=torch.zeros(T + 1, B, dtype=torch.bool))
    with pytest.raises(ValueError, match=rf"^starts must .*, \({T}, 1\), not \({B}, {T}\)"):
        it.nn.GRU(D, N).double()(draw(T, D), starts=torch.zeros(B, T, dtype=torch.bool))
