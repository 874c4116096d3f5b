"""Tensors without values, without elements, of half precision or no dense ones, and programs that record operations."""

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import jvp, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import isometry.torch as it
import tolerance
from derivatives import compiled, draw, leaves, same, score
from layers import FORMS, HEADED, KINDS, B, D, N, T, each_kind, whole
from programs import constants, programs


def calls(rng):
    """A call of every kind."""
    found = {**constants(rng), **programs(rng)}
    return {name: call for name, call in found.items() if name not in ("activate", "packed delta", "oft", "hra")}


@pytest.fixture(params=calls(np.random.default_rng(0)))
def program(request, seed):
    """A function of tensors, and a point."""
    return calls(seed)[request.param]


# ---------------------------------------------------------------- tensors without values


def test_fake_tensors(program):
    """Shape and dtype of the result without its values, inside the mode and outside, where constants are real."""
    f, at = program
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = [mode.from_tensor(t) for t in at]
        inside = f(*fake)
    expected = f(*at)
    for found in (inside, f(*fake)):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


def test_meta_tensors(program):
    """Shape and dtype of the result without its values, and a backward pass."""
    f, at = program
    expected, far = f(*at), leaves(t.to("meta") for t in at)
    found = f(*far)
    assert (found.shape, found.dtype, found.device.type) == (expected.shape, expected.dtype, "meta")
    grads = torch.autograd.grad(found.abs().sum(), far)
    assert [g.shape for g in grads] == [t.shape for t in far]


@each_kind
def test_layers_on_the_meta_device(name):
    """Shapes of results and gradients before memory is allocated; then the layer is moved and initialised."""
    with torch.device("meta"):
        assert {t.device.type for t in KINDS[name](D, N).state_dict().values()} == {"meta"}
    layer = KINDS[name](D, N, 2, bidirectional=True, trainable_h0=True, device="meta")
    x = torch.empty(T, B, D, device="meta")
    out, last = layer(x)
    assert (out.shape, out.device.type) == ((T, B, 2 * N), "meta")
    assert (last.shape, last.device.type) == ((4, B, *layer._state), "meta")
    out.abs().sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    assert layer(x, torch.empty_like(last))[0].shape == out.shape
    packed = PackedSequence(torch.empty(9, D, device="meta"), torch.tensor([3, 2, 2, 1, 1]))
    out, last = layer(packed)
    assert (out.data.shape, last.shape) == ((9, 2 * N), (4, 3, *layer._state))
    layer.to_empty(device="cpu").reset_parameters()
    assert layer(torch.ones(T, B, D))[0].isfinite().all()


def test_meta_tensors_of_half_precision_are_refused_like_others():
    """torch has no autocast on the meta device, and must not be queried for it."""
    half = torch.ones(5, 2, dtype=torch.float16)
    for t in (half, half.to("meta")):
        with pytest.raises(TypeError, match="vectors must be float32"):
            it.Householder(t)


# ---------------------------------------------------------------- tensors that are not dense


def in_other_layouts(value):
    """A tensor in each, a pair with one of its parts in each."""
    if isinstance(value, tuple):
        packed = isinstance(value, PackedSequence)
        for k, part in enumerate(value[:1] if packed else value):
            for other in in_other_layouts(part):
                yield value._replace(data=other) if packed else (*value[:k], other, *value[k + 1 :])
        return
    yield value.to_sparse()
    if value.dtype is torch.float32:
        yield value.to_mkldnn()
    if value.dim() == 2:
        yield value.to_sparse_csr()


def cached(layer):
    def step(**given):
        with layer.cached():
            layer.step(**given)

    return step


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("form", [*KINDS, *FORMS, *HEADED, torch.nn.LSTMCell, torch.nn.GRUCell])
def test_layers_refuse_tensors_that_are_not_dense(form):
    """Each argument of calls and steps, each part of a state, by its name."""
    cell = not isinstance(form, str)
    layer = it.nn.from_torch(form(D, N), cells=True) if cell else whole(form, dtype=torch.float32)
    x, marks = torch.randn(T, B, D), torch.zeros(T, B, dtype=torch.bool)
    with torch.no_grad():
        state = layer(x[0]) if cell else layer(x)[1]
    calls = [(step, {"input": x[0], "hx": state}) for step in (layer.step, cached(layer))]
    if not cell:
        calls.append((layer, {"input": x, "hx": state, "starts": marks, "start_state": state}))
        calls += [(layer, {"input": given, "hx": state}) for given in (x[:1], pack_padded_sequence(x, [T] * B))]
        calls += [(layer, {"input": x, "hx": state, "mask": marks})] if len(layer._state) == 1 else []
    if form == "rum-memory":
        calls.append((layer.step, {"input": x[0], "hx": (state, torch.ones(1, B, N, N))}))
    for call, given in calls:
        call(**given)
        for argument, value in given.items():
            for other in in_other_layouts(value):
                with pytest.raises(TypeError, match=rf"^{argument}(\[1\])? must be a dense \(strided\) tensor"):
                    call(**{**given, argument: other})


# ---------------------------------------------------------------- recorded programs


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_make_fx(program, mode):
    """The graph of one point gives the values at another."""
    f, at = program
    graph = make_fx(f, tracing_mode=mode)(*at)
    moved = [1.5 * t + 0.1 for t in at]
    same(graph(*moved), f(*moved))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")  # the checks of shapes are Python and are not traced
def test_jit_trace(program):
    """The trace of one point gives the values at another."""
    f, at = program
    trace = torch.jit.trace(f, tuple(at), check_trace=False)
    moved = [1.5 * t + 0.1 for t in at]
    same(trace(*moved), f(*moved))


# ---------------------------------------------------------------- shapes and dtypes


def test_operators_without_parameters():
    """Without reflections, or with a 1 x 1 matrix, only the last factor remains; without features, the recurrence."""
    assert it.Cayley(torch.ones(0)).matrix().tolist() == [[1.0]]
    assert it.Cayley(torch.ones(2, 0), signs=-torch.ones(1)).matrix().tolist() == [[[-1.0]]] * 2
    assert it.Householder(torch.ones(3, 0), sign=-1).apply(torch.ones(3)).tolist() == [1.0, 1.0, -1.0]
    x, v = torch.ones(3, 2, 2), torch.ones(5, 2)
    still = it.recurrence(it.Householder(torch.ones(5, 0)), x, v, activation="identity")
    assert still[:, 0, 0].tolist() == [2.0, 4.0, 6.0]
    assert not it.recurrence(it.Dense(torch.ones(5, 5)), x[..., :0], v[:, :0]).any()


#: Calls without reflections, and stacks.
WITHOUT = {
    "matrix": (lambda u, _: it.Householder(u).matrix(), ()),
    "apply": (lambda u, x: it.Householder(u, sign=-1.0).apply(x), (3,)),
    "apply_adjoint": (lambda u, x: it.Householder(u, phases=torch.ones_like(x[0])).apply_adjoint(x), ()),
    "recurrence": (lambda u, x: it.recurrence(it.Householder(u), x[:, None], x.mT @ x), ()),
}


@pytest.mark.parametrize("call", WITHOUT)
def test_no_reflections_stay_in_the_graph(call, seed):
    """Empty gradients of both orders, compiled too: a parameter missing from the graph breaks optimisers and
    checks."""
    of, stack = WITHOUT[call]
    x = draw(seed, 2, *stack, 4)
    f = lambda u: of(u, x)
    second = lambda u: torch.func.grad(lambda u: torch.func.grad(lambda u: score(f(u)))(u).sum())(u)
    for function in (f, compiled(f)):
        (u,) = leaves([torch.zeros(*stack, 4, 0, dtype=torch.float64)])
        out = function(u)
        same(out, f(u.detach()))
        out.abs().square().sum().backward()
        assert u.grad.shape == u.shape
    (first,) = torch.autograd.grad(score(f(u)), u, create_graph=True)
    assert torch.autograd.grad(first.sum(), u)[0].shape == u.shape
    for function in (second, compiled(second)):
        assert function(u.detach()).shape == u.shape


@pytest.mark.parametrize("name", ["modrelu", "modrelu_realrep"])
def test_the_bias_of_no_features_stays_in_the_graph(name):
    (bias,) = leaves([torch.zeros(0)])
    it.activate(torch.zeros(3, 0), name, bias=bias).sum().backward()
    assert bias.grad.shape == (0,)


# ---------------------------------------------------------------- autocast

U, V = torch.linspace(0.1, 1, 12).reshape(6, 2).cos(), torch.ones(6, 2)
#: Functions of x (4, 3, 2).
UNDER_AUTOCAST = {
    "householder": lambda x: it.Householder(x.reshape(6, 4)).apply(U.mT),
    "no reflections": lambda x: it.Householder(U[:, :0]).apply(x.reshape(4, 6)),
    "cayley": lambda x: it.Cayley(x.flatten()[:15]).matrix(),
    "dense": lambda x: it.Dense(U).apply_adjoint(x.reshape(4, 6)),
    "activation": lambda x: it.activate(x, "tanh"),
    "recurrence": lambda x: it.recurrence(it.Householder(U), x, V),
    "error": lambda x: it.orthogonality_error(x),
    "jvp": lambda x: jvp(lambda x: it.recurrence(it.Householder(U), x, V), (x,), (x,))[1],
    "vmap": lambda x: vmap(it.Householder(U).apply)(x.reshape(4, 6)),
    "compiled": lambda x: torch.compile(it.Householder(U).apply, backend="aot_eager", fullgraph=True)(x.reshape(4, 6)),
}


@pytest.mark.parametrize("call", UNDER_AUTOCAST)
def test_autocast_leaves_single_precision(call, seed):
    """Half-precision arguments, as other modules return them, are widened, and no product is narrowed on the way."""
    torch.compiler.reset()
    half = draw(seed, 4, 3, 2).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        found = UNDER_AUTOCAST[call](half)
        wide = UNDER_AUTOCAST[call](half.float())
    expected = UNDER_AUTOCAST[call](half.float())
    assert found.dtype == wide.dtype == expected.dtype == torch.float32
    tolerance.close(found, expected, tolerance.sequence("float32", 6, 4), "of half-precision arguments")
    tolerance.close(wide, expected, tolerance.sequence("float32", 6, 4), "of single-precision arguments")
