"""Properties of the layers beyond torch.nn.RNN and the laws of their operators: options, training, readouts."""

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import isometry.torch as it
import tolerance
from layers import (
    CELL_LAYERS,
    COMPLEX,
    FORMS,
    FREE,
    KINDS,
    LAYERS,
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
    formed,
    whole,
)


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
