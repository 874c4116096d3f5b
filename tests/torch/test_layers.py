"""Properties of every layer beyond the laws of operators: options, training, torch.nn.RNN, sequences of nothing."""

import contextlib
import itertools

import numpy as np
import pytest
import torch
from torch.func import functional_call, grad, jacrev, vmap
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence
from torch.utils._pytree import tree_flatten, tree_leaves

import isometry as iso
import isometry.torch as it
import tolerance
from faces import tensor
from laws.test_functions import SMOOTH, function
from layers import (
    CELL_LAYERS,
    COMPLEX,
    FORMS,
    FREE,
    HEADED,
    KINDS,
    LAYERS,
    MATRIX,
    OF_CELLS,
    PAIRS,
    SOFT,
    B,
    D,
    N,
    T,
    build,
    close,
    draw,
    each_layer,
    every_form,
    formed,
    whole,
)
from orthogonal_weights import EVERY
from registry.cells import CASES


@each_layer
def test_a_layer_or_direction_that_is_not_there(name):
    layer = build(name, 2)
    for k in (2, -1):
        with pytest.raises(IndexError, match="layer"):
            layer.recurrent_matrix(layer=k)
    with pytest.raises(ValueError, match="bidirectional"):
        layer.recurrent_matrix(reverse=True)


# ---------------------------------------------------------------- options


def test_modrelu_without_a_bias_has_bias_zero():
    for name in (*LAYERS, *(form for form in FORMS if form.startswith(("goru", "rum")) and form != "rum-eta")):
        layer, plain = (formed(name, nonlinearity=kind, bias=False) for kind in ("modrelu", "identity"))
        plain.load_state_dict(layer.state_dict())
        x = draw(T, B, D)
        close(layer(x)[0], plain(x)[0], "modReLU with bias zero is the identity")


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_input(name):
    """A complex layer accepts complex input; real input is treated as complex with imaginary part zero."""
    layer, x = build(name, 2), draw(T, B, D)
    close(layer(x + 0j)[0], layer(x)[0])
    assert layer(torch.complex(x, draw(T, B, D, seed=1)))[0].dtype == torch.complex128
    with pytest.raises(ValueError, match="complex64"):
        layer(x.to(torch.complex64))
    with pytest.raises(ValueError, match="complex128"):
        build("scornn")(x + 0j)
    with pytest.raises(TypeError, match="hx must have the precision of the weights, torch.float64, not torch.float32"):
        build("scornn")(x, draw(1, B, N).float())
    for other in (torch.float32, torch.complex64):
        with pytest.raises(TypeError, match="float64|complex128"):
            layer(x, draw(2, B, N).to(other))


@pytest.mark.parametrize("kind", ["scornn", *CELL_LAYERS])
def test_a_complex_state_of_a_real_layer(kind):
    layer, state = whole(kind), draw(1, B, N)
    with pytest.raises(TypeError, match="hx must be real"):
        layer(draw(T, B, D), (state, state + 0j) if kind in PAIRS else state + 0j)


def test_dropout_takes_whole_complex_units():
    layer = build("scurnn", 2, dropout=0.5, nonlinearity="identity", bias=False)
    seen = []
    layer._run, run = lambda sweep: seen.append(sweep.x) or run(sweep), layer._run
    layer(draw(T, B, D))
    gone = seen[1] == 0
    assert 0.2 < gone.double().mean() < 0.8
    assert (seen[1].real[~gone] != 0).all()
    assert (seen[1].imag[~gone] != 0).all()


# ---------------------------------------------------------------- training


@pytest.mark.parametrize("steps", [40, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("form", [*LAYERS, *FREE, *(form for form, (kind, _) in FORMS.items() if kind == "goru")])
def test_orthogonality_survives_training(form, steps):
    """e(W) in float32 after steps of Adam, of a free W after steps of its own optimiser."""
    kind, keywords = FORMS.get(form, (form, {}))
    layer = KINDS[kind](2, 8, **keywords)
    head = torch.nn.Linear(16 if layer.is_complex else 8, 1)
    start, own = layer.recurrent_matrix().detach(), list(layer.recurrent_parameters()) if form in FREE else []
    rest = [p for p in layer.parameters() if not any(p is q for q in own)]
    optimizers = [torch.optim.Adam([*rest, *head.parameters()], lr=1e-2)]
    optimizers += [it.optim.CayleyRMSprop(own, lr=1e-2)] if own else []
    for _ in range(steps):
        x = torch.rand(4, 4, 2)
        h = layer(x)[1][0]
        features = torch.cat([h.real, h.imag], -1) if h.is_complex() else h
        for optimizer in optimizers:
            optimizer.zero_grad()
        torch.nn.functional.mse_loss(head(features), x[..., 0].sum(0)[:, None]).backward()
        for optimizer in optimizers:
            optimizer.step()
    w = layer.recurrent_matrix().detach()
    assert (w - start).abs().max() > (0.1 if steps > 40 else 0.02), "training moved W"
    assert form in SOFT or max(map(it.orthogonality_error, (start, w))) < tolerance.UNITARITY


# ---------------------------------------------------------------- layers in a model


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("keywords", [{}, {"bidirectional": True, "num_layers": 2}, {"last_only": True}], ids=str)
def test_every_layer_before_a_readout(name, keywords):
    layer = build(name, **keywords)
    states = layer(draw(T, B, D))[0]
    features = it.nn.RealState()(states)
    assert not features.is_complex() and features.shape == (*states.shape[:-1], layer.output_size)
    if states.is_complex():
        assert torch.equal(features, it.real_state(states))
    else:
        assert features is states
    torch.nn.Linear(layer.output_size, 2).double()(features)
    packed, _ = layer(pack_padded_sequence(draw(T, B, D), [T, 2, 1, 3], enforce_sorted=False))
    if not layer.last_only:
        features = it.nn.RealState()(packed)
        assert type(features) is PackedSequence and features[1:] == packed[1:]
        assert torch.equal(features.data, it.nn.RealState()(packed.data))


@pytest.mark.slow
def test_gradients_of_real_states():
    module = it.nn.RealState()
    z = torch.randn(3, N, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(module, (z,))
    assert list(module.state_dict()) == []
    assert torch.equal(torch.compile(module, fullgraph=True)(z), module(z))
    with pytest.raises(TypeError, match="^input must be"):
        module([1.0])


def test_parameter_groups():
    """All parameters once: the transitions with their rate; of the GRU and the RUM there are none."""
    layers = torch.nn.ModuleList([build("ornn", 2), build("rum"), build("gru"), build("goru"), build("delta-product")])
    model = torch.nn.ModuleDict({"layers": layers, "again": layers[0], "readout": torch.nn.Linear(N, 1)})
    fast, slow = it.nn.parameter_groups(model, lr=1e-2, recurrent_lr=1e-3)
    assert (fast["lr"], slow["lr"]) == (1e-2, 1e-3)
    ids = [id(p) for group in (fast, slow) for p in group["params"]]
    assert len(ids) == len(set(ids)) and set(ids) == {id(p) for p in model.parameters()}
    expected = [p for layer in layers for p in layer.recurrent_parameters()]
    assert len(slow["params"]) == len(expected) and {id(p) for p in slow["params"]} == {id(p) for p in expected}
    for layer in (build("rum"), build("gru")):
        assert list(layer.recurrent_parameters()) == []
        (group,) = it.nn.parameter_groups(layer, lr=0.1, recurrent_lr=0.2)
        assert group["lr"] == 0.1 and len(group["params"]) == len(list(layer.parameters()))
    optimiser = torch.optim.Adam(it.nn.parameter_groups(model, lr=1e-2, recurrent_lr=1e-3))
    assert [group["lr"] for group in optimiser.param_groups] == [1e-2, 1e-3]


def test_groups_of_what_is_no_module():
    for wrong in (3, None, [build("gru")], torch.zeros(2), build("gru").parameters()):
        with pytest.raises(TypeError, match=r"^module must be a torch\.nn\.Module, not "):
            it.nn.parameter_groups(wrong, lr=0.1, recurrent_lr=0.1)


each_form = pytest.mark.parametrize("form", [*FORMS, *HEADED])


@pytest.mark.parametrize("form", ["ornn", "scurnn", *FORMS, *HEADED])
@pytest.mark.slow
def test_compiles_in_one_piece(form):
    """No graph break; a layer of each kind has two layers and directions."""
    torch.compiler.reset()
    layer, x = formed(form, 2, bidirectional=True) if form in KINDS else formed(form), draw(T, B, D)
    close(torch.compile(layer, backend="aot_eager", fullgraph=True)(x)[0], layer(x)[0])


@pytest.mark.parametrize("name", [*COMPLEX, *OF_CELLS, *MATRIX])
def test_per_sample_gradients(name):
    """torch.func's gradients of every sequence alone add up to autograd's."""
    layer = build(name)
    x, parameters = draw(T, B, D), {key: p.detach() for key, p in layer.named_parameters()}

    def loss(parameters, x):
        return torch.func.functional_call(layer, parameters, (x,))[0][-1].abs().square().sum()

    every = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 1))(parameters, x[:, :, None])
    layer(x)[0][-1].abs().square().sum().backward()
    for key, p in layer.named_parameters():
        tolerance.close(every[key].sum(0), p.grad, tolerance.sequence_gradient("float64", N, T), key)


@every_form
def test_what_is_recorded_changes_no_bit(form):
    """Of results; a frozen layer passes the same gradient on to its input."""
    layer, x = formed(form, 2, bidirectional=True), draw(T, B, D).requires_grad_()
    expected = layer(x)
    bar = torch.autograd.grad(expected[0].abs().square().sum(), x)[0]
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert all(map(torch.equal, layer(x), expected))
    found = torch.autograd.grad(layer.requires_grad_(False)(x)[0].abs().square().sum(), x)[0]
    tolerance.close(found, bar, tolerance.sequence_gradient("float64", N, T), "gradient")


@each_form
def test_a_trained_initial_state_and_none_at_all(form):
    """The trained initial state is what serves where none is given, and it has a gradient; without one it is 0."""
    layer, x = formed(form, trainable_h0=True), draw(T, B, D)
    close(layer(x)[0], layer(x, layer.h0_l0.expand(1, B, *layer._state))[0], "the trained one")
    layer(x)[0].sum().backward()
    assert layer.h0_l0.grad.shape == layer._state
    assert layer.h0_l0.grad.any()
    plain = formed(form, bias=False)
    assert not plain(torch.zeros(T, B, D, dtype=torch.float64))[0].any()


def returned(layer, batch):
    """What calls and steps return, the states behind the output of a call."""
    x = draw(T, *batch, D)
    cell, step = isinstance(layer, CELLS), layer.step(x[0])
    yield [None, *tree_leaves(step[1] if not cell and len(layer._state) > 1 else step)]
    if not cell:
        yield from (tree_leaves(layer(given)) for given in (x, x[:1]))
        if batch:
            yield tree_leaves(layer(pack_sequence(x.unbind(1)))[1])


CELLS = tuple(type(it.nn.from_torch(kind(1, 1), cells=True)) for kind in (torch.nn.LSTMCell, torch.nn.GRUCell))


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("form", [*KINDS, *FORMS, *HEADED, *CELLS])
def test_states_are_tensors_of_their_own(form, recorded):
    """Each is overwritten and detached in place; nothing else that was returned is."""
    for size, batch, cached in itertools.product((1, 2), ((), (1,), (B,)), (False, True)):
        layer = form(D, N, dtype=torch.float64) if form in CELLS else whole(form, size)
        with torch.set_grad_enabled(recorded), layer.cached() if cached else contextlib.nullcontext():
            for output, *states in returned(layer, batch):
                before = [None if t is None else t.detach().clone() for t in (output, *states)]
                for k, t in enumerate(states, 1):
                    t[..., torch.arange(t.shape[-1]) % 2 > 0] = 0
                    t.detach_()
                    others = [
                        (own, was)
                        for own, was in zip((output, *states[k:]), (before[0], *before[k + 1 :]), strict=True)
                    ]
                    assert all(own is None or torch.equal(own, was) for own, was in others)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("cell", [case for case in CASES if len(case.cell.first) > 1], ids=str)
def test_parts_of_states_are_tensors_of_their_own(cell, recorded):
    """Of functions, whatever there is one of: steps, sequences, units."""
    for steps, batch, n, output in itertools.product((1, 3), (1, 2), (1, 4), ("states", "last")):
        drawn = {k: torch.as_tensor(a) for k, a in cell.draw(np.random.default_rng(0), n, steps, batch).items()}
        lead, given = cell.given({k: t.requires_grad_(recorded) for k, t in drawn.items()}, it)
        first, second = getattr(it, cell.cell.stem)(*lead, **given, output=output)
        before = second.detach().clone()
        first[..., torch.ones(n, dtype=torch.bool)] = 0
        first.detach_()
        assert torch.equal(second.detach_(), before)


def batches(size, tree):
    """A batch of this size of every tensor."""
    return torch.utils._pytree.tree_map(lambda t: t.detach().expand(size, *t.shape), tree)


def of_nothing(f, *arguments, in_dims=0):
    """Results of a batch of none have the structure, shapes and types of those of a batch of one, but for the batch."""
    dims = (in_dims,) * len(arguments) if in_dims == 0 else in_dims
    given = lambda size: [a if d is None else batches(size, a) for a, d in zip(arguments, dims, strict=True)]
    none, one = (tree_flatten(vmap(f, dims)(*given(size))) for size in (0, 1))
    assert none[1] == one[1]
    for a, b in zip(none[0], one[0], strict=True):
        assert a.shape == (0, *b.shape[1:]) and a.dtype == b.dtype


def every_way(f, parameters, x):
    """Of f(parameters, x): examples, members, both, one inside the other; values and gradients."""
    loss = lambda p, x: f(p, x).abs().square().sum()
    own = grad(loss, argnums=(0, 1))
    real = not any(t.is_complex() for t in tree_flatten((parameters, x))[0])  # as jacrev needs them
    for g in (f, own, *((jacrev(loss),) if real else ())):
        for dims in ((None, 0), (0, None), (0, 0)):
            of_nothing(g, parameters, x, in_dims=dims)
    # members of no example, no member of two examples
    for outer, inner in ((2, 0), (0, 2)):
        found = vmap(vmap(own, (None, 0)), (0, None))(batches(outer, parameters), batches(inner, x))
        assert tree_flatten(found)[0][-1].shape == (outer, inner, *x.shape)
    # a sum over no example has the gradient zero
    for g in tree_flatten(grad(lambda p: vmap(lambda x: loss(p, x))(batches(0, x)).sum())(parameters))[0]:
        assert not g.any()


@pytest.mark.parametrize("name", KINDS)
def test_layers(name):
    layer, x = build(name), draw(T, B, D)
    parameters = {key: p.detach() for key, p in layer.named_parameters()}
    every_way(lambda p, x: functional_call(layer, p, (x,))[0], parameters, x)
    of_nothing(layer, x)
    of_nothing(layer.step, x[0])
    of_nothing(layer, x, draw(1, B, *layer._state))


def test_operators(case, seed):
    n = case.size(4)
    given = {name: tensor(a) for name, a in case.draw(seed, n).items()}
    trained = {key: t for key, t in given.items() if t.is_floating_point() or t.is_complex()}
    made = lambda some: case.build(it, {**given, **some}, n)
    operator = made({})
    x, y = (torch.randn(3, k, dtype=operator.dtype) for k in operator.shape[::-1])
    every_way(lambda some, x: made(some).apply(x), trained, x)
    of_nothing(lambda some: made(some).matrix(), trained)
    of_nothing(grad(lambda some: made(some).matrix().abs().square().sum()), trained)
    of_nothing(lambda some, y: made(some).apply_adjoint(y), trained, y, in_dims=(0, None))


test_operators.select = lambda case: case.dtype in (np.float64, np.complex128)


@pytest.mark.parametrize("kind", [it.adapters.OFT, it.adapters.HRA])
def test_adapters(kind):
    adapter, x = kind(torch.nn.Linear(8, 3), 4), torch.randn(5, 8)
    trained = {key: p.detach() for key, p in adapter.named_parameters() if p.requires_grad}
    every_way(lambda p, x: functional_call(adapter, p, (x,)), trained, x)
    assert adapter(x[:0]).shape == (0, 3)


@EVERY
def test_weights(name):
    for shape in ((6, 6), (9, 4), (4, 9)):
        module = it.parametrizations.orthogonal(torch.nn.Linear(*shape[::-1]), orthogonal_map=name)
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        every_way(lambda s, x: functional_call(module, s, (x,)), state, torch.randn(5, shape[1]))


@pytest.mark.parametrize("name", [*SMOOTH, "recurrence"])
def test_functions(name, seed):
    three = lambda x: it.recurrence(it.Cayley(x.new_zeros(3)), x.view(4, 1, 3), x.new_ones(3, 3))
    call, at = function(name, seed) if name in SMOOTH else (three, [torch.randn(4, 3, dtype=torch.float64)])
    of_nothing(call, *at)
    of_nothing(grad(lambda *at: call(*at).sum()), *at)


@pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])
def test_stacks_of_none(package):
    """Of every function of matrices."""
    given = (lambda a: a) if package is iso else torch.from_numpy
    for shape in ((0, 9, 4), (2, 0, 4, 4), (3, 0), (0, 3), (0, 0), (0, 12, 12), (2, 9, 0)):
        a = given(np.zeros(shape))
        assert package.linalg.procrustes(a).shape == package.linalg.geqrf(a)[0].shape == shape
