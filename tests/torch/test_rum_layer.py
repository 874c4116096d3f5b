"""`it.nn.RUM`: the textbook per sequence and parameters."""

import pytest
import torch

import isometry.torch as it
from layers import B, D, N, T, build, draw, each_form, formed, is_the_textbook_loop, named, steps


@each_form("rum")
def test_the_layer_is_the_textbook_loop(form):
    layer = formed(form, 2, bidirectional=True)
    phi = torch.tanh if form == "rum-eta" else torch.relu

    def run(suffix, y, h):
        names = ("weight_hh", "weight_ih", "bias", "embed_weight", "embed_bias")
        w, u, b, embed, embed_bias = (getattr(layer, name + suffix) for name in names)
        memory = torch.eye(N, dtype=torch.float64)

        def step(h, x):
            nonlocal memory
            keep, tau = (w @ h + u @ x + b).split(N)
            e = embed @ x + embed_bias
            turn = it.Rotation(e, tau).matrix()
            memory = memory @ turn if form == "rum-memory" else turn
            h = torch.lerp(phi(e + memory @ h), h, torch.sigmoid(keep))
            return h if layer.eta is None else layer.eta * h / h.norm()

        return steps(step, y, h)

    is_the_textbook_loop(layer, draw(4, 3, N, seed=1), run)


@pytest.mark.parametrize("nonlinearity", ["modrelu", "relu"])
def test_without_bias_none_is_trained(nonlinearity):
    """As in the other layers the modReLU then has the bias 0."""
    layer = build("rum", bias=False, nonlinearity=nonlinearity, eta=1.0)
    assert {name.partition("_l")[0] for name, _ in layer.named_parameters()} == {
        "weight_hh",
        "weight_ih",
        "embed_weight",
    }
    biased = build("rum", nonlinearity=nonlinearity, eta=1.0)
    with torch.no_grad():
        for name, p in biased.named_parameters():
            p.copy_(getattr(layer, name)) if "bias" not in name else p.zero_()
    x = draw(T, B, D)
    assert torch.equal(layer(x)[0], biased(x)[0]) and layer(x)[0].isfinite().all()


def test_names_and_shapes_of_the_state_dict():
    layer = it.nn.RUM(D, N, 2, bidirectional=True, trainable_h0=True, nonlinearity="modrelu")
    expected = named(
        lambda d: {
            "weight_hh": (2 * N, N),
            "weight_ih": (2 * N, d),
            "embed_weight": (N, d),
            "bias": (2 * N,),
            "embed_bias": (N,),
            "activation_bias": (N,),
            "h0": (N,),
        }
    )
    assert {key: tuple(value.shape) for key, value in layer.state_dict().items()} == expected
    layer = it.nn.RUM(D, N, bias=False)
    assert set(layer.state_dict()) == {"weight_hh_l0", "weight_ih_l0", "embed_weight_l0"}
    assert tuple(it.nn.RUM(D, N, nonlinearity="modrelu_realrep").activation_bias_l0.shape) == (N // 2,)


def test_initial_values():
    """Weights uniform within sqrt(6 / (n + columns)), biases and initial states zero."""
    for key, p in it.nn.RUM(D, N, 2, trainable_h0=True, nonlinearity="modrelu").named_parameters():
        if "weight" in key:
            bound = (6 / (N + p.shape[1])) ** 0.5
            assert 0.5 * bound < p.abs().max() <= bound
        else:
            assert not p.any()


def test_representation_and_refusals():
    assert repr(it.nn.RUM(D, N, 2, eta=2.0)) == "RUM(3, 6, num_layers=2, lam=0, eta=2.0, nonlinearity='relu')"
    with pytest.raises(ValueError, match="lam must be 0"):
        it.nn.RUM(D, N, lam=2)
    with pytest.raises(ValueError, match="eta must be a positive number"):
        it.nn.RUM(D, N, eta=-1.0)
    with pytest.raises(ValueError, match="nonlinearity must be one of"):
        it.nn.RUM(D, N, nonlinearity="sine")
    with pytest.raises(ValueError, match="hidden_size must be even"):
        it.nn.RUM(D, 5, nonlinearity="oplu")
    with pytest.raises(TypeError, match="reflections"):
        it.nn.RUM(D, N, reflections=2)
    with pytest.raises(TypeError, match="hx must be real"):
        build("rum")(draw(T, B, D), draw(1, B, N) + 0j)
