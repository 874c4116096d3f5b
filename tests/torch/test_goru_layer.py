"""`it.nn.GORU`: the function with stored parameters, every transition, names, initial values, refusals, training."""

import math

import pytest
import torch

import isometry.torch as it
import tolerance
from layers import B, D, N, T, build, close, draw, is_the_textbook_loop

#: transition -> (the names and shapes of its parameters and buffers, W of them)
TRANSITIONS = {
    "mesh": ({"theta": (N - 1,)}, lambda p: it.Mesh(p["theta"], n=N, layers=2)),
    "householder": ({"vectors": (N, N - 1)}, lambda p: it.Householder.from_trapezoid(p["vectors"])),
    "cayley": (
        {"upper": (N * (N - 1) // 2,), "signs": (N,)},
        lambda p: it.Cayley(p["upper"], signs=torch.tensor([1.0] * (N // 2) + [-1.0] * (N // 2)).double()),
    ),
    "exponential": ({"upper": (N * (N - 1) // 2,)}, lambda p: it.Exponential(p["upper"])),
}
each_transition = pytest.mark.parametrize("transition", TRANSITIONS)
each_reset = pytest.mark.parametrize("reset", ["before", "after"])


def goru(*args, **keywords):
    return build("goru", *args, **keywords)


@each_transition
@each_reset
@pytest.mark.parametrize("nonlinearity", ["tanh", "modrelu"])
def test_the_layer_is_the_function_with_its_parameters(nonlinearity, reset, transition):
    layer = goru(2, transition=transition, reset=reset, nonlinearity=nonlinearity, bidirectional=True)

    def run(suffix, y, h):
        p = {name.removesuffix(suffix): t for name, t in layer.state_dict().items() if name.endswith(suffix)}
        w = TRANSITIONS[transition][1](p).matrix()
        close(layer.recurrent_matrix(int(suffix[2]), suffix.endswith("reverse")), w, "W")
        given = {"h0": h[None], "reset": reset, "activation": nonlinearity}
        if nonlinearity == "modrelu":
            given["activation_bias"] = p["activation_bias"]
        found = it.gru(y[:, None], torch.cat((p["weight_hh"], w[None])), p["weight_ih"], p["bias"], **given)[:, 0]
        return found, found[-1]

    is_the_textbook_loop(layer, draw(4, 3, N, seed=1), run)


@each_transition
def test_names_and_shapes(transition):
    own = TRANSITIONS[transition][0]
    layer = it.nn.GORU(D, N, transition=transition, trainable_h0=True, nonlinearity="modrelu")
    gates = {"weight_hh": (2, N, N), "weight_ih": (3, N, D), "bias": (3, N), "activation_bias": (N,), "h0": (N,)}
    assert {k.removesuffix("_l0"): tuple(v.shape) for k, v in layer.state_dict().items()} == gates | own
    trained = [getattr(layer, f"{name}_l0") for name in own if name != "signs"]
    assert [id(p) for p in layer.recurrent_parameters()] == [id(p) for p in trained]
    plain = it.nn.GORU(D, N, transition=transition, bias=False)
    assert {k.removesuffix("_l0") for k in plain.state_dict()} == {"weight_hh", "weight_ih", *own}


@each_transition
def test_initial_values(transition):
    """W orthogonal and drawn from the seed; the others as those of the GRU."""
    torch.manual_seed(1)
    layer = it.nn.GORU(D, N, transition=transition)
    for name in ("weight_hh_l0", "weight_ih_l0"):
        p = getattr(layer, name)
        bound = math.sqrt(6 / (N + p.shape[2]))
        assert 0.5 * bound < p.abs().max() <= bound
    assert not layer.bias_l0.any()
    w = layer.recurrent_matrix()
    assert it.orthogonality_error(w) < tolerance.UNITARITY
    torch.manual_seed(1)
    layer.reset_parameters()
    assert torch.equal(layer.recurrent_matrix(), w)
    layer.reset_parameters()
    assert not torch.equal(layer.recurrent_matrix(), w)


def test_capacity_is_the_number_of_layers_of_the_mesh():
    layer = it.nn.GORU(D, 8, capacity=5)
    assert layer.theta_l0.shape == (it.Mesh.random(8, layers=5).theta.shape[0],)
    assert layer.recurrent_matrix()[0].count_nonzero() > it.nn.GORU(D, 8).recurrent_matrix()[0].count_nonzero()


def test_representation_and_refusals():
    text = "GORU(3, 6, transition='cayley', reset='after', nonlinearity='tanh', capacity=None)"
    assert repr(it.nn.GORU(D, N, transition="cayley", reset="after")) == text
    for keywords, error, words in (
        ({"transition": "fourier"}, ValueError, "transition must be 'mesh' or .* not 'fourier'"),
        ({"reset": "never"}, ValueError, "reset must be 'before' or 'after', not 'never'"),
        ({"nonlinearity": "sine"}, ValueError, "nonlinearity must be one of"),
        ({"capacity": 0}, ValueError, "capacity must be"),
        (
            {"transition": "cayley", "capacity": 5},
            ValueError,
            "capacity must be None with transition 'cayley', .* not 5",
        ),
    ):
        with pytest.raises(error, match=words):
            it.nn.GORU(D, N, **keywords)
    with pytest.raises(ValueError, match="hidden_size must have an even number"):
        it.nn.GORU(D, 5, nonlinearity="oplu")


@each_transition
def test_modrelu_without_biases_is_the_identity(transition):
    layer, plain = (goru(transition=transition, nonlinearity=kind, bias=False) for kind in ("modrelu", "identity"))
    plain.load_state_dict(layer.state_dict())
    x = draw(T, B, D)
    close(layer(x)[0], plain(x)[0])


@each_transition
def test_training_keeps_w_orthogonal(transition):
    layer = goru(transition=transition, dtype=torch.float32)
    start = layer.recurrent_matrix().detach()
    optimizer, losses = torch.optim.Adam(layer.parameters(), lr=0.05), []
    x = draw(T, B, D, dtype=torch.float32)
    for _ in range(40):
        loss = (layer(x)[1][0].sum(-1) - x.sum((0, 2)).tanh()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    after = layer.recurrent_matrix().detach()
    assert (after - start).abs().max() > 0.05
    assert it.orthogonality_error(after) < tolerance.UNITARITY
