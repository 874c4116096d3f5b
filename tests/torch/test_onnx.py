"""ONNX export of every real layer, for any number of steps and sequences, against ONNX Runtime."""

from importlib import import_module

import numpy as np
import pytest
import torch
from torch.export import Dim

import isometry.torch as it
import other_packages
import tolerance
from isometry._rules.check_recurrence import ACTIVATIONS
from layers import COMPLEX, KINDS, B, D, N, build, draw

pytestmark = other_packages.MARKS

#: A layer and its keywords; the nodes of its recurrences, where they are not one Scan for each layer and direction.
MODULES = [
    *((name, {}, None) for name in KINDS if name not in (*COMPLEX, "lstm", "gru")),
    *((name, {"complex": False}, None) for name in ("eurnn", "kru")),
    *(("ornn", {"nonlinearity": name}, None) for name in ACTIVATIONS),
    ("ornn", {"num_layers": 2, "bidirectional": True, "batch_first": True}, None),
    ("lstm", {}, ["LSTM"]),
    ("lstm", {"num_layers": 2, "bidirectional": True, "trainable_h0": True}, 4 * ["LSTM"]),
    ("lstm", {"bidirectional": True, "last_only": True}, 2 * ["LSTM"]),
    ("gru", {"num_layers": 2, "bidirectional": True, "batch_first": True}, 4 * ["GRU"]),
    ("gru", {"reset": "after", "trainable_h0": True}, ["GRU"]),
    ("gru", {"last_only": True}, ["GRU"]),
    ("goru", {"reset": "after", "transition": "cayley"}, None),
    ("goru", {"nonlinearity": "modrelu_realrep", "bias": False}, None),
    ("rum", {"lam": 1, "eta": 1.0, "bidirectional": True}, None),
    ("delta-product", {"gate": False, "bidirectional": True, "trainable_h0": True}, None),
    ("scornn", {"last_only": True, "checkpoint": "sqrt", "bidirectional": True}, None),
]


def agree(found, expected, steps=7):
    for a, b in zip(found, torch.utils._pytree.tree_leaves(expected), strict=True):
        tolerance.close(torch.from_numpy(a), b.detach(), tolerance.sequence("float32", N, steps), "of ONNX")


def exported(model, path, *given, example, **sizes):
    """The session of a model's export, whose results are the model's for arguments other than its example."""
    onnx, runtime = import_module("isometry.integrations.onnx"), import_module("onnxruntime")
    onnx.export(model, example, path, dynamic_shapes=sizes, verbose=False)
    session = runtime.InferenceSession(path)
    names = [i.name for i in session.get_inputs()]
    agree(session.run(None, {name: t.numpy() for name, t in zip(names, given, strict=True)}), model(*given))
    return session


def recurrences(path):
    """The kinds of nodes that are recurrences."""
    kinds = [node.op_type for node in import_module("onnx").load(path).graph.node]
    return [kind for kind in kinds if kind in ("LSTM", "GRU", "RNN", "Scan")]


@pytest.mark.parametrize(("name", "keywords", "nodes"), MODULES)
def test_every_real_layer(name, keywords, nodes, tmp_path):
    """Torch's laws become the nodes of ONNX, others a Scan; from a state too, and for a sequence of one step."""
    layer = build(name, dtype=torch.float32, **keywords)
    example, x = (draw(*shape, D, dtype=torch.float32) for shape in ((4, 2), (7, 5)))
    sizes = {"input": {0: Dim("first", min=2 if layer.batch_first else 1), 1: Dim("second", min=2)}}
    session = exported(layer, tmp_path / "layer.onnx", x, example=(example,), **sizes)
    found = recurrences(tmp_path / "layer.onnx")
    assert found == nodes if nodes else set(found) == {"Scan"}
    if not layer.batch_first:
        agree(session.run(None, {"input": x[:1].numpy()}), layer(x[:1]), 1)


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_one_unit_without_biases(name, tmp_path):
    layer, path, x = getattr(it.nn, name)(D, 1, bias=False), tmp_path / "layer.onnx", draw(4, 2, D, dtype=torch.float32)
    exported(layer, path, x, example=(torch.ones_like(x),))
    assert recurrences(path) == [name]


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
    for k, model in enumerate((Cells(dtype), build("gru", dtype=torch.float64), build("lstm", dtype=torch.float64))):
        x = draw(5, B, D, dtype=next(model.parameters()).dtype)
        exported(model, path := tmp_path / f"{k}.onnx", x, example=(x,))
        assert set(recurrences(path)) == {"Scan"}


class Model(torch.nn.Module):
    """A layer that is called with h_0."""

    def __init__(self):
        super().__init__()
        self.rnn, self.readout = it.nn.ScoRNN(D, N), torch.nn.Linear(N, 2)

    def forward(self, x, state):
        states, last = self.rnn(x, state)
        return self.readout(states), last


def test_a_model_with_a_state(tmp_path):
    """W is an initialiser, and its parameters are gone."""
    onnx, model, path = import_module("onnx"), Model(), tmp_path / "model.onnx"
    given = draw(9, B, D, dtype=torch.float32), draw(1, B, N, dtype=torch.float32)
    exported(model, path, *given, example=(given[0][:4], given[1]), x={0: Dim("T", min=2)}, state=None)
    stored = [onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer]
    w = model.rnn.recurrent_matrix().detach().numpy()
    assert any(t.shape == w.shape and (np.array_equal(t, w) or np.array_equal(t, w.T)) for t in stored)
    assert recurrences(path) == ["Scan"]
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
    "a stack": lambda: it.nn.OperatorModule(it.Householder(draw(5, N, 2, dtype=torch.float32))),
    "reflections of the input": lambda: OfInput(lambda x: it.Householder(x.mT).matrix()),
    "reflections applied": lambda: OfInput(lambda x: it.Householder(x[:2].mT)(x)),
    "exponentials of the input": lambda: OfInput(lambda x: it.Exponential(x).matrix()),
    "products of the input": lambda: OfInput(lambda x: it.linalg.ormqr(x.mT, x[:, 0], x.mT, True, True)),
    "factorisations of the input": lambda: OfInput(lambda x: it.linalg.geqrf(x[:4])),
    "hadamard": lambda: OfInput(lambda x: it.hadamard_transform(x[..., :4])),
    "an activation": lambda: OfInput(lambda x: it.activate(x, "modrelu_realrep", bias=x[0, :3])),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_no_layer(name, tmp_path):
    """Matrices of parameters are computed at export; operators on the input become their formulas."""
    model = MODELS[name]()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * draw(*p.shape, dtype=torch.float32))
    trained = [p.requires_grad for p in model.parameters()]
    example, x = (0.5 * draw(5, N, seed=seed, dtype=torch.float32) for seed in (1, 2))
    exported(model, tmp_path / "model.onnx", x, example=(example,))
    assert [p.requires_grad for p in model.parameters()] == trained


def test_a_model_that_shuffles_and_drops(tmp_path):
    """What is random, or is updated by a call, is not computed at export."""
    model = torch.nn.Sequential(it.nn.OperatorModule(it.Cayley.random(N)), torch.nn.BatchNorm1d(N), torch.nn.Dropout())
    exported(model.eval(), tmp_path / "model.onnx", draw(5, N, dtype=torch.float32), example=(torch.ones(5, N),))


def test_what_onnx_cannot_compute():
    x, onnx = draw(3, 3, dtype=torch.float32), import_module("isometry.integrations.onnx")
    complex_layer = torch.nn.Sequential(torch.nn.Linear(3, D), it.nn.ScuRNN(D, N))
    of_lengths = OfInput(lambda x: it.recurrence(it.Dense(x), x[:, None], x, lengths=[2]))
    complex_operator = it.nn.OperatorModule(it.Householder.random(3, dtype=torch.complex64))
    for model, given, error, said in (
        (3, (), TypeError, r"^model must be a torch\.nn\.Module, not int"),
        (complex_layer, (x,), TypeError, r"ScuRNN \(1\) has complex states"),
        (complex_operator, (x + 0j,), TypeError, "Householder is complex: ONNX has no complex numbers"),
        (OfInput(lambda x: it.Cayley(x).matrix()), (x,), NotImplementedError, "cannot compute isometry.cayley_values"),
        (of_lengths, (x,), NotImplementedError, "sequences of one length"),
    ):
        with pytest.raises(error, match=said):
            onnx.export(model, given)


def test_any_length_after_a_fixed_one(tmp_path):
    """A first export of one size does not fix those of the next."""
    layer, example = it.nn.GRU(D, N), draw(5, B, D, dtype=torch.float32)
    import_module("isometry.integrations.onnx").export(layer, (example,), tmp_path / "fixed.onnx", verbose=False)
    x = draw(3, 2, D, seed=1, dtype=torch.float32)
    sizes = {"input": {0: Dim("T", min=2), 1: Dim("B", min=2)}}
    exported(layer, tmp_path / "any.onnx", x, example=(example,), **sizes)
