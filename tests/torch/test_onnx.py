"""ONNX export of every real layer, for any number of steps and sequences, against ONNX Runtime."""

from importlib import import_module

import numpy as np
import pytest
import torch
from torch.export import Dim

import isometry.torch as it
import tolerance
from isometry._rules.check_recurrence import ACTIVATIONS
from layers import COMPLEX, KINDS, B, D, N, build, draw

pytestmark = [
    pytest.mark.extra,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]

MODULES = [
    *((name, {}) for name in KINDS if name not in COMPLEX),
    *((name, {"complex": False}) for name in ("eurnn", "kru")),
    *(("ornn", {"nonlinearity": name}) for name in ACTIVATIONS),
    ("ornn", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    ("gru", {"reset": "after", "trainable_h0": True}),
    ("goru", {"reset": "after", "transition": "cayley"}),
    ("rum", {"lam": 1, "eta": 1.0, "bidirectional": True}),
    ("delta-product", {"gate": False, "bidirectional": True, "trainable_h0": True}),
    ("scornn", {"last_only": True, "checkpoint": "sqrt", "bidirectional": True}),
    ("goru", {"nonlinearity": "modrelu_realrep", "bias": False}),
]


def both(model, path, *given, example, **sizes):
    """The results of a model and of its export, for arguments other than those it was exported with."""
    onnx, runtime = import_module("isometry.integrations.onnx"), import_module("onnxruntime")
    onnx.export(model, example, path, dynamic_shapes=sizes, verbose=False)
    session = runtime.InferenceSession(path)
    names = [i.name for i in session.get_inputs()]
    found = session.run(None, {name: t.numpy() for name, t in zip(names, given, strict=True)})
    with torch.no_grad():
        return found, model(*given), session


@pytest.mark.parametrize(("name", "keywords"), MODULES)
def test_every_real_layer(name, keywords, tmp_path):
    layer = build(name, dtype=torch.float32, **keywords)
    example, x = (draw(*shape, D, dtype=torch.float32) for shape in ((4, 2), (7, 5)))
    sizes = {"input": {0: Dim("first", min=2), 1: Dim("second", min=2)}}
    found, expected, _ = both(layer, tmp_path / "layer.onnx", x, example=(example,), **sizes)
    for a, b in zip(found, expected, strict=True):
        tolerance.close(torch.from_numpy(a), b, tolerance.sequence("float32", N, 7), "of ONNX")


#: name -> the layer, and the nodes of its recurrences.
NODES = {
    "lstm": (lambda: it.nn.LSTM(D, N, 2, bidirectional=True, trainable_h0=True), 4 * ["LSTM"]),
    "lstm of one unit": (lambda: it.nn.LSTM(D, 1, bias=False), ["LSTM"]),
    "lstm, the last state": (lambda: it.nn.LSTM(D, N, bidirectional=True, last_only=True), 2 * ["LSTM"]),
    "gru, reset before": (lambda: it.nn.GRU(D, N, 2, bidirectional=True, batch_first=True), 4 * ["GRU"]),
    "gru, reset after": (lambda: it.nn.GRU(D, N, reset="after", trainable_h0=True), ["GRU"]),
    "gru without biases": (lambda: it.nn.GRU(D, 1, bias=False, last_only=True), ["GRU"]),
    "rnn": (lambda: it.nn.RNN(D, N, 2), 2 * ["Scan"]),
    "scornn": (lambda: it.nn.ScoRNN(D, N), ["Scan"]),
    "goru": (lambda: it.nn.GORU(D, N), ["Scan"]),
    "rum": (lambda: it.nn.RUM(D, N), ["Scan"]),
}


@pytest.mark.parametrize("name", NODES)
def test_nodes_of_onnx(name, tmp_path):
    """Torch's laws become the nodes of ONNX, others a Scan; from a state too, and for a sequence of one step."""
    make, expected = NODES[name]
    torch.manual_seed(5)
    layer, onnx = make(), import_module("onnx")
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.3 * torch.randn_like(p))
    example, x = (draw(*shape, D, dtype=torch.float32) for shape in ((4, 2), (7, 5)))
    path, sizes = tmp_path / "layer.onnx", {"input": {0: Dim("first", min=1), 1: Dim("second", min=2)}}
    found, results, session = both(layer, path, x, example=(example,), **sizes)
    flat = torch.utils._pytree.tree_leaves(results)
    for a, b in zip(found, flat, strict=True):
        tolerance.close(torch.from_numpy(a), b, tolerance.sequence("float32", N, 7), "of ONNX")
    kinds = [node.op_type for node in onnx.load(path).graph.node]
    assert [kind for kind in kinds if kind in ("LSTM", "GRU", "RNN", "Scan")] == expected
    if not layer.batch_first:
        (one, *_) = session.run(None, {"input": x[:1].numpy()})
        tolerance.close(torch.from_numpy(one), layer(x[:1])[0].detach(), tolerance.sequence("float32", N, 1), "a step")


class Cells(torch.nn.Module):
    """An LSTM of which c of every step is read, too."""

    def __init__(self, dtype):
        super().__init__()
        self.w, self.u = (torch.nn.Parameter(draw(4, N, k, dtype=dtype)) for k in (N, D))

    def forward(self, x):
        return it.lstm(x, self.w, self.u)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_a_node_does_not_give_is_a_scan(dtype, tmp_path):
    """c of every step; and double precision, for which runtimes have no kernels of these nodes."""
    onnx = import_module("onnx")
    for k, model in enumerate((Cells(dtype), build("gru", dtype=torch.float64), build("lstm", dtype=torch.float64))):
        x = draw(5, B, D, dtype=next(model.parameters()).dtype)
        found, expected, _ = both(model, path := tmp_path / f"{k}.onnx", x, example=(x,))
        for a, b in zip(found, torch.utils._pytree.tree_leaves(expected), strict=True):
            tolerance.close(torch.from_numpy(a), b, tolerance.sequence("float32", N, 5), "of ONNX")
        kinds = [node.op_type for node in onnx.load(path).graph.node]
        assert "Scan" in kinds and not {"LSTM", "GRU", "RNN"} & {*kinds}


def test_a_model_with_a_state(tmp_path):
    """A layer inside a model, called with h_0; W is an initialiser, and its parameters are gone."""
    onnx = import_module("onnx")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.readout = it.nn.ScoRNN(D, N), torch.nn.Linear(N, 2)

        def forward(self, x, state):
            states, last = self.rnn(x, state)
            return self.readout(states), last

    model, path = Model(), tmp_path / "model.onnx"
    sizes = {"x": {0: Dim("T", min=2)}, "state": None}
    given = draw(9, B, D, dtype=torch.float32), draw(1, B, N, dtype=torch.float32)
    found, expected, _ = both(model, path, *given, example=(given[0][:4], given[1]), **sizes)
    for a, b in zip(found, expected, strict=True):
        tolerance.close(torch.from_numpy(a), b, tolerance.sequence("float32", N, 9), "of ONNX")
    graph = onnx.load(path).graph
    stored = [onnx.numpy_helper.to_array(t) for t in graph.initializer]
    w = model.rnn.recurrent_matrix().detach().numpy()
    assert any(t.shape == w.shape and (np.array_equal(t, w) or np.array_equal(t, w.T)) for t in stored)
    assert [node.op_type for node in graph.node].count("Scan") == 1
    assert all(p.requires_grad for p in model.parameters())


class Own(torch.nn.Module):
    """An operator on parameters of one's own, as a factor of a product, and functions of linalg."""

    def __init__(self):
        super().__init__()
        self.upper = torch.nn.Parameter(draw(N * (N - 1) // 2, dtype=torch.float32))
        self.vectors = torch.nn.Parameter(draw(N, 3, dtype=torch.float32))

    def forward(self, x):
        q = it.linalg.householder_product(*it.linalg.geqrf(self.vectors))
        return (it.Householder(self.vectors) @ it.Cayley(self.upper))(x) @ q


class OfInput(torch.nn.Module):
    """Operators on the input: their formulas."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


MODELS = {
    "adapters": lambda: torch.nn.Sequential(
        it.adapters.OFT(torch.nn.Linear(N, N), 3), it.adapters.HRA(torch.nn.Linear(N, 2), 2)
    ),
    "modules": lambda: torch.nn.Sequential(
        it.nn.OperatorModule(it.Cayley.random(N) @ it.Householder.random(N, 2)),
        it.nn.OperatorModule(it.Mesh.random(N, layers=2).H),
        it.nn.OperatorModule(it.Exponential.random(N).columns(N)),
    ),
    "weights": lambda: torch.nn.Sequential(
        it.parametrizations.orthogonal(torch.nn.Linear(N, 4)),
        it.parametrizations.orthogonal(torch.nn.Linear(4, 4), orthogonal_map="cayley"),
    ),
    "bare operators": Own,
    "a stack": lambda: OfInput(Stack()),
    "reflections of the input": lambda: OfInput(lambda x: it.Householder(x.mT).matrix()),
    "reflections applied": lambda: OfInput(lambda x: it.Householder(x[:2].mT)(x)),
    "exponentials of the input": lambda: OfInput(lambda x: it.Exponential(x).matrix()),
    "products of the input": lambda: OfInput(lambda x: it.linalg.ormqr(x.mT, x[:, 0], x.mT, True, True)),
    "factorisations of the input": lambda: OfInput(lambda x: it.linalg.geqrf(x[:4])),
    "hadamard": lambda: OfInput(lambda x: it.hadamard_transform(x[..., :4])),
    "an activation": lambda: OfInput(lambda x: it.activate(x, "modrelu_realrep", bias=x[0, :3])),
}


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors = torch.nn.Parameter(draw(5, N, 2, dtype=torch.float32))

    def forward(self, x):
        return it.Householder(self.vectors)(x)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_no_layer(name, tmp_path):
    """Matrices of parameters are computed at export; operators on the input become their formulas."""
    model = MODELS[name]()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * draw(*p.shape, dtype=torch.float32))
    trained = [p.requires_grad for p in model.parameters()]
    example, x = (0.5 * draw(5, N, seed=seed, dtype=torch.float32) for seed in (1, 2))
    found, expected, _ = both(model, tmp_path / "model.onnx", x, example=(example,))
    expected = expected if isinstance(expected, tuple) else (expected,)
    for a, b in zip(found, expected, strict=True):
        tolerance.close(torch.from_numpy(a), b, tolerance.sequence("float32", N, 7), "of ONNX")
    assert [p.requires_grad for p in model.parameters()] == trained


def test_a_model_that_shuffles_and_drops(tmp_path):
    """What is random, or is updated by a call, is not computed at export."""
    model = torch.nn.Sequential(it.nn.OperatorModule(it.Cayley.random(N)), torch.nn.BatchNorm1d(N), torch.nn.Dropout())
    found, expected, _ = both(
        model.eval(), tmp_path / "model.onnx", draw(5, N, dtype=torch.float32), example=(torch.ones(5, N),)
    )
    tolerance.close(torch.from_numpy(found[0]), expected, tolerance.sequence("float32", N, 1), "of ONNX")


def test_what_onnx_cannot_compute():
    onnx = import_module("isometry.integrations.onnx")
    with pytest.raises(TypeError, match=r"^model must be a torch\.nn\.Module, not int"):
        onnx.export(3, ())
    x = draw(3, 3, dtype=torch.float32)
    with pytest.raises(NotImplementedError, match="ONNX cannot compute isometry.cayley_values"):
        onnx.export(OfInput(lambda x: it.Cayley(x).matrix()), (x,))
    with pytest.raises(TypeError, match="Householder is complex: ONNX has no complex numbers"):
        onnx.export(it.nn.OperatorModule(it.Householder.random(3, dtype=torch.complex64)), (x + 0j,))
    with pytest.raises(NotImplementedError, match="sequences of one length"):
        onnx.export(OfInput(lambda x: it.recurrence(it.Dense(x), x[:, None], x, lengths=[2])), (x,))


def test_complex_layers_are_refused():
    onnx = import_module("isometry.integrations.onnx")
    model = torch.nn.Sequential(torch.nn.Linear(D, D), it.nn.ScuRNN(D, N))
    with pytest.raises(TypeError, match=r"ScuRNN \(1\) has complex states"):
        onnx.export(model, (draw(3, B, D, dtype=torch.float32),))


def test_any_length_after_a_fixed_one(tmp_path):
    """A first export of one size does not fix those of the next."""
    layer, example = it.nn.GRU(D, N), draw(5, B, D, dtype=torch.float32)
    import_module("isometry.integrations.onnx").export(layer, (example,), tmp_path / "fixed.onnx", verbose=False)
    x = draw(3, 2, D, seed=1, dtype=torch.float32)
    sizes = {"input": {0: Dim("T", min=2), 1: Dim("B", min=2)}}
    (states, _), (expected, _), _ = both(layer, tmp_path / "any.onnx", x, example=(example,), **sizes)
    tolerance.close(states, expected.numpy(), tolerance.sequence("float32", N, 5), "states")
