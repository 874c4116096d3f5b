"""The mode of a call is decided once: what a graph contains and saves, its operators, exports, symbolic sizes."""

import numpy as np
import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch.export import Dim, export
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import opcheck

import isometry.torch as it
from derivatives import compiled, draw, leaves, same, score
from isometry._cells import declaration
from isometry._cells._declaration import Array
from isometry._core import CELLS
from kernel_calls import recorded
from layers import KINDS, B, D, T
from programs import BATCH, FEATURES, STEPS, N, programs
from registry import CASES

SIZES = {"T": STEPS, "B": BATCH, "d": FEATURES, "n": N}


def arguments(rng, cell, stem="", own=(), number=1.0):
    """The arguments of `isometry::sequence` for a cell: every second array that may be left out is, `number` stands for
    each setting."""
    rows, settings, *_ = CELLS[cell]
    arrays = [(Array(name, axes), optional) for name, axes, optional in rows[:-2]]
    tensors = [None if optional and i % 2 else draw(rng, *a.shape(SIZES)) for i, (a, optional) in enumerate(arrays)]
    call = (cell, stem, "tanh", 0.1, [number] * len(settings), False, "none", False)
    return call, [*tensors, None], list(own)


CAYLEY = "cayley", lambda rng: [draw(rng, 6), None, None, None]
#: The cell, and the object of its transition with how to draw that one's arguments.
EXAMPLES = {
    "a matrix": ("recurrence", "dense", lambda rng: [draw(rng, N, N)]),
    "reflections": ("recurrence", "householder", lambda rng: [draw(rng, N, 1), None, None]),
    "W of an operator": ("recurrence", *CAYLEY),
    **{
        cell: (cell, *(CAYLEY if row[6] else ("", lambda _rng: [])))
        for cell, row in CELLS.items()
        if cell != "recurrence"
    },
}


def drawn(rng, example):
    cell, stem, own = EXAMPLES[example]
    return arguments(rng, cell, stem, own(rng), number=float(cell != "recurrence"))


LAST = [(example, how, True) for example in ("a matrix", "gru", "lstm") for how in ("none", "sqrt")]


@pytest.mark.parametrize(
    ("example", "checkpoint", "last"), [*((example, "none", False) for example in EXAMPLES), *LAST]
)
def test_operators_of_sequences(example, checkpoint, last, seed):
    """Both are what torch asks of an operator: schema, fake results, no derivative of their own."""
    call, tensors, own = drawn(seed, example)
    call, tensors = (*call[:-2], checkpoint, last), [*tensors, *own, None, None, None]
    given = (*call, tensors, None, True)
    opcheck(torch.ops.isometry.sequence.default, given)
    out = torch.ops.isometry.sequence(*given)
    cts = [torch.ones_like(t) for t in out[: 1 + declaration(call[0]).memory(*call[4])]]
    saved = [None, *out[1:]] if last else out
    backward = (*call, tensors, saved, cts, [t is not None for t in tensors])
    opcheck(torch.ops.isometry.sequence_backward.default, backward)


def test_operators_of_operators(seed):
    """The two of a matrix and the two of rows."""
    upper, x = [draw(seed, 6), None, None, None], draw(seed, 3, N)
    no, wanted = torch.tensor(False), [True, False, False, False]
    opcheck(torch.ops.isometry.matrix.default, ("cayley", [N, N], upper, None, True))
    w, ct = it.Cayley(upper[0]).matrix(), draw(seed, N, N)
    opcheck(torch.ops.isometry.matrix_backward.default, ("cayley", [N, N], upper, [w, no], [ct], wanted))
    opcheck(torch.ops.isometry.apply.default, ("cayley", False, N, [x, *upper], None, True))
    given = ("cayley", False, N, [x, *upper], [no], [x], [True, *wanted])
    opcheck(torch.ops.isometry.apply_backward.default, given)


@pytest.mark.parametrize("name", ["ORNN", "EURNN", "KRU", "URNN"])
def test_a_compiled_layer_takes_the_factors(name, monkeypatch):
    """It forms W no more than the eager layer does, where few reflections or blocks are cheaper."""
    layer = getattr(it.nn, name)(2, 512, **({"reflections": 2} if name == "ORNN" else {}))
    x = torch.randn(6, 2, 2)
    layer(x)[0].abs().sum().backward()
    expected = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    fast = compiled(lambda x: layer(x)[0])
    fast(x)
    calls = recorded(monkeypatch)
    fast(x).abs().sum().backward()
    assert not calls.of("operator_matrix") and calls.of("recurrence") and calls.of("recurrence_vjp")
    assert all(stem != "dense" for stem, _ in calls.of("recurrence"))
    for p, grad in zip(layer.parameters(), expected, strict=True):
        torch.testing.assert_close(p.grad, grad)


def test_a_graph_computes_the_gradients_that_are_wanted(seed):
    """With one trained array the kernel gets room for one gradient."""
    found = []

    def backend(graph, _inputs):
        found.extend(node for node in graph.graph.nodes if "sequence_backward" in str(node.target))
        return graph.forward

    x, v = draw(seed, STEPS, BATCH, FEATURES), leaves([draw(seed, N, FEATURES)])[0]
    op = it.Householder(draw(seed, N, 1))

    torch.compiler.reset()
    fast = torch.compile(
        lambda v: it.recurrence(op, x, v),
        backend=aot_autograd(fw_compiler=backend, bw_compiler=backend),
        fullgraph=True,
    )
    score(fast(v)).backward()
    same(v.grad, torch.autograd.grad(score(it.recurrence(op, x, v)), v)[0])
    (node,) = found
    assert [bool(w) for w in node.args[-1]] == [False, True, *[False] * 9]


def test_inductor(seed):
    """The whole way to compiled C++ code."""
    layer, x = it.nn.GORU(2, 4), draw(seed, 3, 2, 2).float()
    torch.compiler.reset()
    fast = torch.compile(layer, backend="inductor", fullgraph=True)
    torch.testing.assert_close(fast(x)[0], layer(x)[0])


@pytest.mark.parametrize("program", ["apply", "matrix", "recurrence, by factors", "gru, before"])
def test_make_fx_with_symbolic_sizes(program, seed):
    f, at = programs(seed)[program]
    graph = make_fx(f, tracing_mode="symbolic")(*at)
    moved = [1.5 * t + 0.1 for t in at]
    same(graph(*moved), f(*moved))


# ---------------------------------------------------------------- nothing is recorded


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_nothing_is_saved_without_gradients(mode, seed, monkeypatch):
    """The kernels are told to save nothing, though parameters require gradients."""
    from isometry import _core

    kept = []
    kernel = _core.sequence

    def call(*given):
        kept.append(given[5][2])
        return kernel(*given)

    monkeypatch.setattr(_core, "sequence", call)
    x = draw(seed, 3, 2, 2).float()
    for kind in (it.nn.ORNN, it.nn.GORU, it.nn.SoftORNN):
        with mode():
            kind(2, 4)(x)
    assert kept == [None, None, None]


def test_other_names_of_the_gated_units(seed):
    """input_weight and bias, as `recurrence` has them; under one of its names each."""
    x, w, u, b = (draw(seed, *shape) for shape in ((3, 2, 2), (3, 4, 4), (3, 4, 2), (3, 4)))
    op = it.Householder(draw(seed, 4, 1))
    same(it.gru(x, w, input_weight=u, bias=b), it.gru(x, w, u, b))
    same(it.goru(op, x, w[:2], input_weight=u, bias=b), it.goru(op, x, w[:2], u, b))
    with pytest.raises(TypeError, match="u and input_weight are the same argument"):
        it.gru(x, w, u, b, input_weight=u)
    with pytest.raises(TypeError, match="u must be a torch.Tensor"):
        it.gru(x, w)


UNITS = 6
FREE = {0: Dim("T", min=2), 1: Dim("B", min=2)}
STACK = 4
#: One dtype of each field: shapes are checked alike for all.
OPERATORS = [case for case in CASES if np.dtype(case.dtype) in (np.float32, np.complex64)]

#: A mask reads states, which are no outputs there.
REFUSED = [("delta-product", "mask")]


class Called(torch.nn.Module):
    """A layer with marks, a mask or neither."""

    def __init__(self, layer, argument):
        super().__init__()
        self.layer, self.argument = layer, argument

    def forward(self, x, beside):
        return self.layer(x, **({} if self.argument is None else {self.argument: beside}))


@pytest.mark.parametrize(
    ("name", "argument"),
    [(name, argument) for name in KINDS for argument in (None, "starts", "mask") if (name, argument) not in REFUSED],
)
def test_layers(name, argument):
    module = Called(KINDS[name](D, UNITS, trainable_h0=True), argument)
    drawn = lambda t, b: (torch.randn(t, b, D), torch.rand(t, b) < 0.6)
    program = export(module, drawn(T, B), dynamic_shapes=(FREE, FREE)).module()
    for sizes in ((7, 2), (D, UNITS), (2, D)):
        at = drawn(*sizes)
        for found, expected in zip(program(*at), module(*at), strict=True):
            torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("subject", [case for case in OPERATORS if case.first], ids=str)
def test_stacks_of_operators(subject, seed):
    """As many rows as members, as sizes of a member, and others."""
    n = subject.size(UNITS)
    op = subject.build(it, {k: torch.from_numpy(a) for k, a in subject.draw(seed, n, (STACK,)).items()}, n)
    dtype, width = op.dtype, op.shape[-1]
    module = it.nn.OperatorModule(op)
    program = export(module, (torch.randn(5, STACK, width, dtype=dtype),), dynamic_shapes=({0: FREE[0]},)).module()
    for rows in (STACK, width, 7):
        x = torch.randn(rows, STACK, width, dtype=dtype)
        torch.testing.assert_close(program(x), op(x))


@pytest.mark.parametrize("subject", OPERATORS, ids=str)
def test_operators_of_arguments(subject, seed):
    """The stack is free, too: as many members as sizes of a member."""
    n = subject.size(UNITS)
    names = list(subject.draw(seed, n, (STACK,)))

    class Made(torch.nn.Module):
        def forward(self, x, *given):
            return subject.build(it, dict(zip(names, given, strict=True)), n)(x)

    def drawn(count):
        arguments = [torch.from_numpy(a) for a in subject.draw(seed, n, (count,)).values()]
        op = subject.build(it, dict(zip(names, arguments, strict=True)), n)
        return torch.randn(count, op.shape[-1], dtype=op.dtype), *arguments

    free = {0: Dim("members", min=2)}
    program = export(Made(), drawn(5), dynamic_shapes=(free, (free,) * len(names))).module()
    for count in (UNITS, n, 2, len(names) + 2):
        at = drawn(count)
        torch.testing.assert_close(program(*at), Made()(*at))
