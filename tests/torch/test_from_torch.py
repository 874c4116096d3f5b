"""Torch's recurrent layers on these kernels and back: what the layers share with torch, and what they refuse."""

import copy

import pytest
import torch
import torch.nn.utils.prune
from torch.nn.utils.rnn import pack_sequence

import isometry.torch as it
from layers import B, D, N, T, draw

LAYERS = {
    "tanh": (torch.nn.RNN, {}),
    "relu": (torch.nn.RNN, {"nonlinearity": "relu"}),
    "gru": (torch.nn.GRU, {}),
    "lstm": (torch.nn.LSTM, {}),
}
each = pytest.mark.parametrize("kind", LAYERS)


def theirs(kind, *sizes, **keywords):
    make, own = LAYERS[kind]
    torch.manual_seed(3)
    return make(D, N, *sizes, **own, **keywords, dtype=torch.float64)


@each
@pytest.mark.parametrize("bias", [True, False])
def test_values_gradients_and_back(kind, bias):
    """Two layers, two directions, packed: the output, the last states, gradients; the way back gives every weight."""
    layer = theirs(kind, 2, bidirectional=True, bias=bias)
    ours = it.nn.from_torch(layer)
    x = pack_sequence([draw(k, D, seed=k) for k in (2, 5, 1)], enforce_sorted=False)
    h = draw(4, 3, N, seed=9)
    h = (h, draw(4, 3, N, seed=8)) if kind == "lstm" else h
    (a, s), (b, r) = ours(x, h), layer(x, h)
    torch.testing.assert_close(a.data, b.data, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(s, r, rtol=1e-12, atol=1e-12)
    s, r = (torch.cat(t) if kind == "lstm" else t for t in (s, r))
    (a.data.square().sum() + s.sum()).backward()
    (b.data.square().sum() + r.sum()).backward()
    found, expected = (sum(p.grad.square().sum() for p in net.parameters()) for net in (ours, layer))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)
    back = it.nn.to_torch(ours)
    assert type(back) is type(layer) and back.state_dict().keys() == layer.state_dict().keys()
    assert all(torch.equal(value, back.state_dict()[key]) for key, value in layer.state_dict().items())


@each
def test_what_stays(kind):
    """Copies; dtype, training, requires_grad; no random numbers are drawn."""
    layer = theirs(kind, batch_first=True).eval()
    layer.weight_hh_l0.requires_grad_(False)
    before = torch.get_rng_state()
    ours = it.nn.from_torch(layer)
    assert torch.equal(torch.get_rng_state(), before)
    assert ours.batch_first and not ours.training and not ours.weight_hh_l0.requires_grad
    assert ours.weight_ih_l0.requires_grad and ours.weight_ih_l0.dtype == torch.float64
    ours.weight_ih_l0.data.zero_()
    assert layer.weight_ih_l0.any()
    again = it.nn.to_torch(ours)
    assert not again.weight_hh_l0.requires_grad and not again.training
    assert it.nn.from_torch(layer.to("meta")).weight_hh_l0.device.type == "meta"


def test_steps_of_a_layer_from_torch():
    for kind in LAYERS:
        ours, x = it.nn.from_torch(theirs(kind, 2)), draw(T, B, D)
        with torch.no_grad(), ours.cached():
            state = None
            for row in x:
                state = ours.step(row, state)
            torch.testing.assert_close(state, ours(x)[1], rtol=1e-12, atol=1e-12)


@each
def test_state_dicts(kind):
    """Torch's goes in as it is, into a model too; a wrong shape is an error that names the entry."""
    layer = theirs(kind, 2)
    make = getattr(it.nn, type(layer).__name__)
    own = {"reset": "after"} if make is it.nn.GRU else LAYERS[kind][1]
    ours = torch.nn.Sequential(make(D, N, 2, **own, dtype=torch.float64))
    state = torch.nn.Sequential(layer).state_dict()
    kept = copy.deepcopy(state)
    ours.load_state_dict(state)
    assert state.keys() == kept.keys()
    torch.testing.assert_close(ours[0](draw(T, B, D))[0], layer(draw(T, B, D))[0], rtol=1e-12, atol=1e-12)
    state["0.weight_hh_l1"] = torch.zeros(7, 2)
    with pytest.raises(RuntimeError, match=r"0\.weight_hh_l1"):
        ours.load_state_dict(state)
    del state["0.weight_hh_l1"]
    with pytest.raises(RuntimeError, match=r"Missing key.*0\.weight_hh_l1"):
        ours.load_state_dict(state)


def test_the_second_bias_of_a_gru():
    """Older state dicts have none: it is zero. Reset before has none, and does not take torch's weights."""
    layer = it.nn.GRU(D, N, reset="after")
    state = {key: value for key, value in layer.state_dict().items() if "hidden" not in key}
    torch.nn.init.ones_(layer.hidden_bias_l0)
    layer.load_state_dict(state)
    assert not layer.hidden_bias_l0.any()
    assert not any("hidden" in key for key in it.nn.GRU(D, N).state_dict())
    assert not any("hidden" in key for key in it.nn.GRU(D, N, reset="after", bias=False).state_dict())
    for bias in (True, False):
        with pytest.raises(RuntimeError, match="make the layer with reset='after'"):
            it.nn.GRU(D, N, bias=bias).load_state_dict(torch.nn.GRU(D, N, bias=bias).state_dict())


def test_a_model():
    """Layers in places of their own, one in two places, a subclass left alone; all or none are replaced."""

    class Own(torch.nn.GRU):
        pass

    shared = torch.nn.GRU(N, N)
    model = torch.nn.ModuleDict({"a": torch.nn.RNN(D, N), "b": shared, "c": Own(D, N), "d": torch.nn.LSTM(D, N)})
    model["again"] = shared
    assert it.nn.from_torch(model) is model
    assert type(model["a"]) is it.nn.RNN and type(model["b"]) is it.nn.GRU and model["again"] is model["b"]
    assert type(model["c"]) is Own and type(model["d"]) is it.nn.LSTM
    with pytest.raises(TypeError, match="subclass Own"):
        it.nn.from_torch(model["c"])
    with pytest.raises(NotImplementedError, match="proj_size"):
        it.nn.from_torch(torch.nn.LSTM(D, N, proj_size=2))
    model = torch.nn.Sequential(torch.nn.RNN(D, N), torch.nn.LSTM(D, N, proj_size=2))
    with pytest.raises(NotImplementedError, match="proj_size"):
        it.nn.from_torch(model)
    assert type(model[0]) is torch.nn.RNN
    with pytest.raises(TypeError, match="module must be"):
        it.nn.from_torch(shared.state_dict())


@each
def test_hooks_are_refused(kind):
    """So are weights that one computes; a model is then left as it was."""
    for change in (
        lambda layer: layer.register_forward_hook(lambda *_: None),
        lambda layer: layer.register_forward_pre_hook(lambda *_: None),
        lambda layer: torch.nn.utils.weight_norm(layer, "weight_hh_l0"),
        lambda layer: torch.nn.utils.prune.l1_unstructured(layer, "weight_hh_l0", 0.5),
        lambda layer: setattr(layer, "forward", lambda x: x),
    ):
        model = torch.nn.Sequential(theirs(kind), theirs(kind))
        change(model[1])
        with pytest.raises(NotImplementedError, match="hooks"):
            it.nn.from_torch(model)
        assert type(model[0]) is type(theirs(kind))


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (lambda: it.nn.GRU(D, N), "reset"),
        (lambda: it.nn.RNN(D, N, nonlinearity="modrelu"), "modrelu"),
        (lambda: it.nn.RNN(D, N, transition=it.Cayley.random), "transition"),
        (lambda: it.nn.RNN(D, N, trainable_h0=True), "trainable_h0"),
        (lambda: it.nn.GRU(D, N, reset="after", last_only=True), "last_only"),
        (lambda: it.nn.ScoRNN(D, N), "no RNN"),
        (lambda: torch.nn.GRU(D, N), "no RNN"),
    ],
)
def test_what_torch_has_not(layer, why):
    with pytest.raises(TypeError, match=f"^layer .*{why}"):
        it.nn.to_torch(layer())
