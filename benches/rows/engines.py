"""LSTM and GRU of one layer beside other engines of a CPU, with the same weights and without gradients: 200 steps, and
one step from a given state. An engine takes part if its package is installed; those that read ONNX get one node.
Training and packed sequences beside torch are in the group "within".
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import isometry.torch as it
from harness.row import Bar, Row
from rows.torch.modules import row

#: From arrays to the output, or the state after a step.
Run = Callable[..., Any]
STEPS = 200
TOLERANCE = (1e-5, 1e-5)
FILES = tempfile.TemporaryDirectory()


@cache
def written(layer: Any, shape: tuple[int, ...]) -> str:
    """An ONNX file with one node for x of that shape, from a given state if it has one step."""
    from onnx import TensorProto, helper, numpy_helper, save

    lstm, n = isinstance(layer, nn.LSTM), layer.hidden_size
    order = [0, 3, 1, 2] if lstm else [1, 0, 2]  # of the gates in ONNX
    u, w, b, second = (p.detach().unflatten(0, (-1, n))[order].flatten(0, 1) for p in layer.parameters())
    sizes = {"W": u, "R": w, "B": torch.cat((b, second))}
    constants = [numpy_helper.from_array(t[None].numpy(), name) for name, t in sizes.items()]
    value = partial(helper.make_tensor_value_info, elem_type=TensorProto.FLOAT)
    state, last = [["H0", "C0"], ["H", "C"]] if lstm else [["H0"], ["H"]]
    before, names = (state, ["", *state]) if shape[0] == 1 else ([], [])
    settings = {"hidden_size": n} | ({} if lstm else {"linear_before_reset": 1})
    node = helper.make_node(layer.mode, ["X", *sizes, *names], ["Y", *last], **settings)
    one = (1, shape[1], n)
    graph = helper.make_graph(
        [node],
        layer.mode,
        [value("X", shape=shape), *(value(name, shape=one) for name in before)],
        [value("Y", shape=(shape[0], *one)), *(value(name, shape=one) for name in last[: len(before)])],
        constants,
    )
    path = tempfile.mkstemp(".onnx", dir=FILES.name)[1]
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def given(layer: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    state = torch.randn(2, 1, shape[1], layer.hidden_size)
    return torch.randn(shape), *(() if shape[0] > 1 else (tuple(state),) if isinstance(layer, nn.LSTM) else (state[0],))


def onnxruntime(layer: Any, shape: tuple[int, ...]) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
    session = onnxruntime.InferenceSession(written(layer, shape), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return lambda *arrays: session.run(None, dict(zip(names, arrays, strict=True)))[0]


def openvino(layer: Any, shape: tuple[int, ...]) -> Run:
    import openvino

    hints = {"NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    hints["INFERENCE_NUM_THREADS"] = torch.get_num_threads()
    core = openvino.Core()
    request = core.compile_model(core.read_model(written(layer, shape)), "CPU", hints).create_infer_request()
    return lambda *arrays: request.infer(dict(enumerate(arrays)))[0]


def tract(layer: Any, shape: tuple[int, ...]) -> Run:
    import tract

    model = tract.onnx().load(written(layer, shape)).into_model().into_runnable()
    return lambda *arrays: model.run(list(arrays))[0].to_numpy()


def jax(layer: Any, shape: tuple[int, ...]) -> Run:
    """A scan over the step, compiled."""
    cores = os.sched_getaffinity(0)
    # its pool begins with the first array, with as many threads as there are cores: no option sets the number
    os.sched_setaffinity(0, sorted(cores)[-torch.get_num_threads() :])
    import jax
    import jax.numpy as jnp

    u, w, b, second = (jnp.asarray(p.detach().numpy()) for p in layer.parameters())
    os.sched_setaffinity(0, cores)
    sigmoid = jax.nn.sigmoid

    def lstm(state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(x + h @ w.T + second, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        h = sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def gru(state: Any, x: Any) -> Any:
        (h,) = state
        (r, z, n), (s, v, m) = jnp.split(x, 3, -1), jnp.split(h @ w.T + second, 3, -1)
        r, z = sigmoid(r + s), sigmoid(z + v)
        h = (1 - z) * jnp.tanh(n + r * m) + z * h
        return (h,), h

    step, parts = (lstm, 2) if isinstance(layer, nn.LSTM) else (gru, 1)

    @jax.jit
    def run(x: Any, *state: Any) -> Any:
        state = tuple(part[0] for part in state) or parts * (jnp.zeros((shape[1], layer.hidden_size)),)
        return jax.lax.scan(step, state, x @ u.T + b)[1]

    return lambda *arrays: np.array(run(*arrays))


def keras(layer: Any, shape: tuple[int, ...]) -> Run:
    """Its layer on TensorFlow, compiled by XLA."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import tensorflow

    tensorflow.config.threading.set_intra_op_parallelism_threads(torch.get_num_threads())
    n, lstm = layer.hidden_size, isinstance(layer, nn.LSTM)
    order = [0, 1, 2, 3] if lstm else [1, 0, 2]  # of the gates in Keras
    u, w, b, second = (p.detach().unflatten(0, (-1, n))[order].flatten(0, 1).numpy() for p in layer.parameters())
    own = (keras.layers.LSTM if lstm else keras.layers.GRU)(n, return_sequences=True)
    own.build((shape[1], shape[0], shape[2]))
    own.set_weights([u.T, w.T, b + second if lstm else np.stack([b, second])])
    run = tensorflow.function(lambda x, state: own(x, initial_state=state), jit_compile=True)
    zeros = [np.zeros((shape[1], n), np.float32)] * (2 if lstm else 1)
    return lambda x, *state: run(x.swapaxes(0, 1), [part[0] for part in state] or zeros).numpy().swapaxes(0, 1)


ENGINES = {build.__name__: build for build in (onnxruntime, openvino, tract, jax, keras)}


def engine(name: str) -> Callable[..., Tensor]:
    run = cache(ENGINES[name])

    def call(layer: Any, x: Tensor, state: Any = ()) -> Tensor:
        state = (state,) if isinstance(state, Tensor) else state
        found = run(layer, tuple(x.shape))(*(t.numpy() for t in (x, *state)))
        return torch.from_numpy(found).view(-1, x.shape[1], layer.hidden_size)

    return call


def torch_layer(layer: Any, x: Tensor, *state: Any) -> Any:
    return layer(x, *state)[0]


def torch_cell(layer: Any, x: Tensor, state: Any) -> Any:
    """The same step by the cell that holds the layer's parameters."""
    found = cell(layer)(x[0], tuple(part[0] for part in state) if isinstance(state, tuple) else state[0])
    return (found[0] if isinstance(found, tuple) else found)[None]


@cache
def cell(layer: Any) -> Any:
    made = (nn.LSTMCell if isinstance(layer, nn.LSTM) else nn.GRUCell)(layer.input_size, layer.hidden_size)
    for own, p in zip(made.parameters(), layer.parameters(), strict=True):
        own.data = p.data
    return made


def ours_step(layer: Any, x: Tensor, state: Any) -> Any:
    found = layer.step(x[0], state)
    return found[0] if isinstance(found, tuple) else found


def draw(kind: Any, n: int, shape: tuple[int, int]) -> tuple[Any, ...]:
    layer = kind(n // 2, n)
    return it.nn.from_torch(layer), layer, *given(layer, (*shape, n // 2))


def rows() -> Iterator[Row]:
    there = [name for name in ENGINES if find_spec(name)]
    if missing := sorted(ENGINES.keys() - there):
        print(f"engines: not installed: {', '.join(missing)}", file=sys.stderr)
    others = {name: engine(name) for name in there}
    for steps, kind, n, batch in product((STEPS, 1), (nn.LSTM, nn.GRU), (128, 512), (1, 32)):
        ours, peers = torch_layer, {"torch": torch_layer} | others
        if steps == 1:
            ours, peers = ours_step, {"torch": torch_layer, "torch's cell": torch_cell} | others
        name = f"{kind.__name__} n{n} B{batch} {'one step' if steps == 1 else f'T{steps}'}"
        bars = [Bar(peer, 1.0, 1.0, (peer,)) for peer in peers]
        yield row(name, partial(draw, kind, n, (steps, batch)), ours, peers, bars, read=None, tolerance=TOLERANCE)
