"""Sequences on devices without kernels: values and gradients of tensors on the CPU that are sent this way."""

import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

import isometry.torch as it
from isometry.torch import on_device
from isometry.torch._dispatch.mode import DEVICE, FORMULA, mode
from isometry.torch.formulas import gru, lstm, recurrence, rum
from isometry.torch.formulas.sequence import Law, states

T, B, D, N = 7, 4, 3, 5
LENGTHS = torch.tensor([7, 4, 1, 0])
PHIS = ["identity", "relu", "leaky_relu", "tanh", "modrelu"]


def drawn(seed, *shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator, dtype=dtype) / 2).requires_grad_()


def affine(phi, dtype, start=True, on_input=False):
    """The cell, its law, formula and tensors: W, x, V, h0, b, and modReLU's bias."""
    own = drawn(6, N) if phi == "modrelu" else None
    h0 = drawn(4, B, N, dtype=dtype) if start else None
    tensors = (drawn(1, N, N, dtype=dtype), drawn(2, T, B, D, dtype=dtype), drawn(3, N, D, dtype=dtype))
    return (
        "recurrence",
        (phi, 0.1, (float(on_input),)),
        recurrence.formula,
        (*tensors, h0, drawn(5, N, dtype=dtype), own),
    )


def gated(after, phi="tanh", own_weight=False):
    """W_h or None, x, w, u, b, h0, c_h, and modReLU's bias."""
    weight, count = (drawn(1, N, N), 2) if own_weight else (None, 3)
    own = drawn(7, N) if phi == "modrelu" else None
    tensors = (weight, drawn(2, T, B, D), drawn(3, count, N, N), drawn(4, 3, N, D), drawn(5, 3, N), drawn(6, B, N))
    cell = "goru" if own_weight else "gru"
    return cell, (phi, 0.1, (float(after),)), gru.formula, (*tensors, drawn(8, N) if after else None, own)


def remembering(bias=True):
    """None, x, w, u, b, the state (h, c), None."""
    x, w, u = drawn(2, T, B, D), drawn(3, 4 * N, N), drawn(4, 4 * N, D)
    b, h0 = (drawn(5, 4 * N), drawn(6, B, 2 * N)) if bias else (None, None)
    return "lstm", ("tanh", 0.0, ()), lstm.formula, (None, x, w, u, b, h0, None)


def rotated(phi="tanh", eta=None):
    """None, x, w, u, b, h0, r0, and modReLU's bias."""
    x, u, b, w = drawn(2, T, B, D), drawn(3, 3 * N, D), drawn(4, 3 * N), drawn(5, 2 * N, N)
    own = drawn(7, N) if phi == "modrelu" else None
    return "rum", (phi, 0.1, (0.0, eta)), rum.formula, (None, x, w, u, b, drawn(6, B, N), None, own)


CASES = {
    "rum": (rotated,),
    "rum eta": (rotated, "relu", 1.5),
    "rum modrelu": (rotated, "modrelu"),
    **{f"{phi}, {dtype}": (affine, phi, dtype) for phi in PHIS for dtype in (torch.float64, torch.complex128)},
    "no start": (affine, "tanh", torch.float64, False),
    "on the input": (affine, "modrelu", torch.float64, True, True),
    "gru before": (gated, False),
    "gru after": (gated, True),
    "goru": (gated, True, "modrelu", True),
    "lstm": (remembering,),
    "lstm without biases": (remembering, False),
    "goru before": (gated, False, "modrelu", True),
}


def make_boxed_func_of(graphs):
    return lambda graph, example: make_boxed_func(graphs(graph, example))


def both(kind, lengths, reverse, last):
    """The states step by step, those of the formula, and the tensors of a case."""
    make, *options = CASES[kind]
    cell, law, formula, given = make(*options)
    law = Law(*law, last)
    ends = LENGTHS if lengths else None
    found = on_device.states(cell, law, ends, reverse, *given)[0]
    expected = states(formula, law, ends, reverse, *given)[0]
    return found, expected, [t for t in given if t is not None]


@pytest.mark.parametrize("last", [False, True], ids=["states", "last"])
@pytest.mark.parametrize("reverse", [False, True], ids=["", "reverse"])
@pytest.mark.parametrize("lengths", [False, True], ids=["", "lengths"])
@pytest.mark.parametrize("kind", CASES)
def test_states_and_gradients_are_those_of_the_formula(kind, lengths, reverse, last):
    found, expected, given = both(kind, lengths, reverse, last)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
    ct = drawn(9, *found.shape, dtype=found.dtype).detach()
    grads, others = (torch.autograd.grad(y, given, ct) for y in (found, expected))
    for grad, other in zip(grads, others, strict=True):
        torch.testing.assert_close(grad, other, rtol=1e-11, atol=1e-12)
    with torch.no_grad():
        torch.testing.assert_close(both(kind, lengths, reverse, last)[0], expected, rtol=1e-12, atol=1e-13)


class Graphs:
    """A compiler that keeps its graphs."""

    def __init__(self):
        self.nodes = []

    def __call__(self, graph, _example):
        self.nodes.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
        return graph


#: Kinds of every cell, with lengths, in reverse, the last state alone.
COMPILED = {
    "rum eta": (False, False, False),
    "modrelu, torch.complex128": (True, True, False),
    "on the input": (True, False, True),
    "gru before": (True, True, False),
    "gru after": (False, False, True),
    "goru": (False, True, False),
    "lstm": (True, False, True),
}


@pytest.mark.parametrize(("kind", "options"), COMPILED.items(), ids=COMPILED)
def test_one_operation_of_a_compiled_graph(kind, options):
    """Forward and backward: values of the formula, for any number of steps."""
    lengths, reverse, last = options
    make, *settings = CASES[kind]
    cell, law, formula, (w, x, *given) = make(*settings)
    law, ends = Law(*law, last), LENGTHS if lengths else None
    graphs = Graphs()
    compiler = aot_autograd(fw_compiler=make_boxed_func_of(graphs), bw_compiler=make_boxed_func_of(graphs))
    run = lambda *tensors: on_device.states(cell, law, ends, reverse, *tensors)[0]
    torch._dynamo.reset()
    fast = torch.compile(run, backend=compiler, fullgraph=True)
    for more in (0, 3):
        x = torch.cat((x.detach(), drawn(11, more, *x.shape[1:], dtype=x.dtype).detach())).requires_grad_()
        tensors = (w, x, *given)
        found, expected = fast(*tensors), states(formula, law, ends, reverse, *tensors)[0]
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
        leaves = [t for t in tensors if t is not None]
        ct = drawn(9, *found.shape, dtype=found.dtype).detach()
        grads, others = (torch.autograd.grad(y, leaves, ct) for y in (found, expected))
        for grad, other in zip(grads, others, strict=True):
            torch.testing.assert_close(grad, other, rtol=1e-11, atol=1e-12)
        with torch.no_grad():
            torch.testing.assert_close(fast(*tensors), expected, rtol=1e-12, atol=1e-13)
    for name in ("isometry.steps.default", "isometry.steps_backward.default"):
        assert {nodes.count(name) for nodes in graphs.nodes} <= {0, 1} and any(name in nodes for nodes in graphs.nodes)
    assert max(map(len, graphs.nodes)) < 60  # whatever the number of steps


def test_a_layer_on_a_device_is_compiled_so_and_exported_in_operations_of_torch():
    layer, x = it.nn.GRU(D, N).to("meta"), torch.empty(T, B, D, device="meta")
    graphs = Graphs()
    torch._dynamo.reset()
    torch.compile(layer, backend=aot_autograd(fw_compiler=make_boxed_func_of(graphs)), fullgraph=True)(x)
    assert ["isometry.steps.default" in nodes for nodes in graphs.nodes] == [True]
    program = torch.export.export(layer, (x,))
    assert not any("isometry" in str(node.target) for node in program.graph.nodes)


@pytest.mark.parametrize("kind", ["tanh, torch.complex128", "gru after", "rum eta"])
def test_second_derivatives(kind):
    make, *options = CASES[kind]
    cell, law, _, given = make(*options)
    tensors = [t for t in given if t is not None]

    def run(*new):
        new = iter(new)
        return on_device.states(cell, Law(*law), LENGTHS, False, *[None if t is None else next(new) for t in given])[0]

    assert torch.autograd.gradgradcheck(run, tensors, fast_mode=True)


def test_nothing_past_an_end_is_read():
    cell, law, _, (w, x, *given) = affine("tanh", torch.float64)
    outside = torch.arange(T)[:, None] >= LENGTHS
    bad = torch.where(outside[..., None], torch.nan, x.detach()).requires_grad_()
    found = on_device.states(cell, Law(*law), LENGTHS, False, w, bad, *given)[0]
    (grad,) = torch.autograd.grad(found.sum(), bad)
    assert found.isfinite().all() and grad.isfinite().all() and not grad[outside].any()


def test_some_gradients_alone():
    cell, law, _, given = gated(False)
    given = [None if t is None else t.detach().requires_grad_(i == 1) for i, t in enumerate(given)]
    assert torch.autograd.grad(on_device.states(cell, Law(*law), None, False, *given)[0].sum(), given[1])[0].any()


def test_activations_whose_derivative_needs_more_take_the_formula():
    assert not any(on_device.serves("recurrence", Law(phi, 0.1, (0.0,)), N) for phi in ("oplu", "modrelu_realrep"))
    assert not on_device.serves("recurrence", Law("leaky_relu", 0.0, (0.0,)), N)
    assert not on_device.serves("rum", Law("relu", 0.1, (1.0, None)), N)
    assert not on_device.serves("rum", Law("relu", 0.1, (0.0, None)), 2)


def test_the_mode_of_a_device():
    meta, here = torch.empty(2, device="meta"), torch.empty(2)
    assert mode(meta) is mode(meta, None, torch.nn.Parameter(meta)) is DEVICE
    assert mode(here, meta) is DEVICE and mode(here) is not DEVICE
    assert mode(meta, torch.Tensor._make_subclass(type("Own", (torch.Tensor,), {}), here)) is FORMULA
    with torch.autograd.forward_ad.dual_level():
        assert mode(meta) is FORMULA
    assert torch.func.vmap(lambda x: torch.ones(()) * (mode(x) is FORMULA))(meta.new_empty(3)).device.type in (
        "cpu",
        "meta",
    )


@pytest.mark.parametrize("layer", ["ScoRNN", "ScuRNN", "GRU", "GORU", "RUM", "SoftORNN"])
def test_layers_on_the_meta_device(layer):
    """Packed and unpacked, in both directions, with gradients."""
    net = getattr(it.nn, layer)(D, N, num_layers=2, bidirectional=True).to("meta")
    x = torch.empty(T, B, D, device="meta", requires_grad=True)
    y, h_n = net(x)
    assert y.shape == (T, B, 2 * N) and h_n.shape == (4, B, N)
    y.abs().sum().backward()
    assert x.grad.shape == x.shape and all(p.grad.shape == p.shape for p in net.parameters())


@pytest.mark.parametrize("eta", [None, 2.0])
def test_degenerate_rotations(eta):
    """e zero, tau zero, opposite, of one direction, tiny and huge: the values and gradients of the formula."""
    x = torch.zeros(7, 1, D, dtype=torch.float64, requires_grad=True)
    e = torch.zeros(7, N, dtype=torch.float64)
    tau = torch.zeros(7, N, dtype=torch.float64)
    e[1, 0] = tau[2, 1] = 1.0
    e[3], tau[3] = 1.0, -1.0
    e[4], tau[4] = 1.0, 2.0
    e[5, 0], tau[5, 1] = 1e-200, 1e-180
    e[6, 0], tau[6, 1] = 1e200, 1e180
    grads = []
    for run in (on_device.states, lambda _, *rest: states(rum.formula, *rest)):
        found = []
        for k in range(7):
            b = torch.cat((torch.zeros(N, dtype=torch.float64), tau[k], e[k])).requires_grad_()
            w = torch.zeros(2 * N, N, dtype=torch.float64, requires_grad=True)
            u = torch.zeros(3 * N, D, dtype=torch.float64)
            h0 = drawn(3, 1, N)
            law = Law("tanh", 0.1, (0.0, eta))
            arguments = (x[k : k + 1], w, u, b, h0, None, None)
            y = run("rum", law, None, False, None, *arguments)[0]
            found += [y, *torch.autograd.grad((y * torch.arange(1.0, N + 1)).sum(), (b, w, h0))]
        grads.append(found)
    for value, expected in zip(*grads, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("size", [1e-3, 1e-9, 1e-18])
def test_a_small_argument_of_complex_modrelu(size, dtype):
    """With a positive bias |z| is lost in |f| = |z| + b."""
    x = (size * drawn(1, 1, B, D, dtype=dtype).detach()).requires_grad_()
    w, v = torch.zeros(N, N, dtype=dtype), drawn(2, N, D, dtype=dtype).detach()
    own = torch.full((N,), 0.5, dtype=x.real.dtype)
    arguments = (Law("modrelu", 0.1, (0.0,)), None, False, w, x, v, None, None, own)
    ct = drawn(3, 1, B, N, dtype=dtype).detach()
    found, expected = (
        torch.autograd.grad(run(*arguments)[0], x, ct)[0]
        for run in (
            lambda *rest: on_device.states("recurrence", *rest),
            lambda *rest: states(recurrence.formula, *rest),
        )
    )
    assert (found - expected).abs().max() < 20 * torch.finfo(dtype).eps * expected.abs().max()


def test_single_precision():
    make, *options = CASES["gru after"]
    cell, law, formula, given = make(*options)
    given = [None if t is None else t.detach().float().requires_grad_() for t in given]
    results = [
        run(*start, Law(*law), LENGTHS, False, *given)[0]
        for run, start in ((on_device.states, (cell,)), (states, (formula,)))
    ]
    grads = [torch.autograd.grad(y.square().sum(), [t for t in given if t is not None]) for y in results]
    for found, expected in zip(*grads, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
