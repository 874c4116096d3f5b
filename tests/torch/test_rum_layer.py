"""`it.nn.RUM`: the textbook per sequence, parameters, modes of torch, training."""

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

import isometry.torch as it
from layers import (
    B,
    D,
    N,
    T,
    build,
    close,
    draw,
    same_per_sample_gradients,
    starts_from_its_trained_state,
    trains_as_in_double,
)

KINDS = {"rotations": {}, "eta": {"eta": 1.5, "nonlinearity": "tanh"}, "memory": {"lam": 1, "eta": 1.0}}
each_kind = pytest.mark.parametrize("kind", KINDS)


def rum(*args, kind="rotations", **keywords):
    return build("rum", *args, **KINDS[kind], **keywords)


@each_kind
def test_the_layer_is_the_textbook_loop(kind):
    """Two layers, two directions, packed: every sequence alone, step by step, from the stored parameters."""
    layer, lengths, h0 = rum(2, kind=kind, bidirectional=True), [2, 5, 1], draw(4, 3, N, seed=1)
    phi = torch.tanh if kind == "eta" else torch.relu
    sequences = [draw(k, D, seed=k) for k in lengths]
    packed, last = layer(pack_sequence(sequences, enforce_sorted=False), h0)
    out, _ = pad_packed_sequence(packed)
    for q, y in enumerate(sequences):
        for k in range(2):
            ways = []
            for r, end in enumerate((f"_l{k}", f"_l{k}_reverse")):
                names = ("weight_hh", "weight_ih", "bias", "embed_weight", "embed_bias")
                w, u, b, embed, embed_bias = (getattr(layer, name + end) for name in names)
                h, states, memory = h0[2 * k + r, q], [], torch.eye(N, dtype=torch.float64)
                for step in y.flip(0) if r else y:
                    keep, tau = (w @ h + u @ step + b).split(N)
                    e = embed @ step + embed_bias
                    turn = it.Rotation(e, tau).matrix()
                    memory = memory @ turn if kind == "memory" else turn
                    h = torch.lerp(phi(e + memory @ h), h, torch.sigmoid(keep))
                    h = h if layer.eta is None else layer.eta * h / h.norm()
                    states.append(h)
                close(last[2 * k + r, q], h, "h_n")
                ways.append(torch.stack(states[::-1] if r else states))
            y = torch.cat(ways, -1)
        close(out[: lengths[q], q], y, f"sequence {q}")


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
    expected = {}
    for k in range(2):
        for way in ("", "_reverse"):
            features = 2 * N if k else D
            shapes = {
                "weight_hh": (2 * N, N),
                "weight_ih": (2 * N, features),
                "embed_weight": (N, features),
                "bias": (2 * N,),
                "embed_bias": (N,),
                "activation_bias": (N,),
                "h0": (N,),
            }
            expected |= {f"{key}_l{k}{way}": shape for key, shape in shapes.items()}
    assert {key: tuple(value.shape) for key, value in layer.state_dict().items()} == expected
    layer = it.nn.RUM(D, N, bias=False)
    assert set(layer.state_dict()) == {"weight_hh_l0", "weight_ih_l0", "embed_weight_l0"}
    assert tuple(it.nn.RUM(D, N, nonlinearity="modrelu_realrep").activation_bias_l0.shape) == (N // 2,)


def test_initial_values():
    """Weights uniform within sqrt(6 / (n + columns)), biases and initial states zero, from the seed."""
    torch.manual_seed(1)
    layer = it.nn.RUM(D, N, 2, trainable_h0=True, nonlinearity="modrelu")
    for key, p in layer.named_parameters():
        if "weight" in key:
            bound = (6 / (N + p.shape[1])) ** 0.5
            assert 0.5 * bound < p.abs().max() <= bound
        else:
            assert not p.any()
    before = {key: p.clone() for key, p in layer.named_parameters()}
    torch.manual_seed(1)
    layer.reset_parameters()
    assert all(torch.equal(p, before[key]) for key, p in layer.named_parameters())


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
        rum()(draw(T, B, D), draw(1, B, N) + 0j)


@each_kind
def test_a_trained_initial_state_and_none_at_all(kind):
    starts_from_its_trained_state(rum(kind=kind, trainable_h0=True))
    plain = it.nn.RUM(D, N, **KINDS[kind], bias=False, dtype=torch.float64)
    assert not plain(torch.zeros(T, B, D, dtype=torch.float64))[0].any()


@each_kind
def test_compiles_in_one_piece(kind):
    """No graph break, for two layers and directions."""
    torch.compiler.reset()
    layer, x = rum(2, kind=kind, bidirectional=True), draw(T, B, D)
    close(torch.compile(layer, backend="aot_eager", fullgraph=True)(x)[0], layer(x)[0])


def test_per_sample_gradients():
    same_per_sample_gradients(rum())


def test_training_in_single_precision_goes_the_way_of_double():
    trains_as_in_double(rum(kind="eta", dtype=torch.float32))
