"""`it.nn.GRU`: torch.nn.GRU with reset "after", the textbook with "before" and parameters."""

import pytest
import torch

import isometry.torch as it
from layers import B, D, N, T, build, draw, is_its_twin, is_the_textbook_loop, named, steps


def gru(*args, **keywords):
    return build("gru", *args, **keywords)


def twin_of(layer, **keywords):
    """torch.nn.GRU with the same matrices and biases, whose order is r, z, h."""
    twin = torch.nn.GRU(D, N, layer.num_layers, bidirectional=layer.bidirectional, dtype=torch.float64, **keywords)
    with torch.no_grad():
        for key, p in twin.named_parameters():
            kind, end = key.split("_l")
            own = getattr(layer, {"bias_ih": "bias", "bias_hh": "hidden_bias"}.get(kind, kind) + "_l" + end)
            p.copy_(own[[1, 0, 2]].flatten(0, 1))
    return twin


@pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "two-way"])
@pytest.mark.parametrize("batch_first", [False, True], ids=["time-first", "batch-first"])
def test_reset_after_is_torch_gru(bidirectional, batch_first):
    layer = gru(2, reset="after", bidirectional=bidirectional, batch_first=batch_first)
    is_its_twin(layer, twin_of(layer, batch_first=batch_first))


def test_reset_before_is_the_textbook_loop():
    layer = gru(2, bidirectional=True)

    def run(suffix, y, h):
        w, u, b = (getattr(layer, kind + suffix) for kind in ("weight_hh", "weight_ih", "bias"))

        def step(h, x):
            drive = u @ x + b
            gate_z, gate_r = torch.sigmoid(w[0] @ h + drive[0]), torch.sigmoid(w[1] @ h + drive[1])
            return gate_z * h + (1 - gate_z) * torch.tanh(w[2] @ (gate_r * h) + drive[2])

        return steps(step, y, h)

    is_the_textbook_loop(layer, draw(4, 3, N, seed=1), run)


def test_names_and_shapes_of_the_state_dict():
    layer = it.nn.GRU(D, N, 2, bidirectional=True, trainable_h0=True)
    expected = named(lambda d: {"weight_hh": (3, N, N), "weight_ih": (3, N, d), "bias": (3, N), "h0": (N,)})
    assert {key: tuple(value.shape) for key, value in layer.state_dict().items()} == expected
    layer = it.nn.GRU(D, N, 2, bidirectional=True, trainable_h0=True, bias=False)
    assert set(layer.state_dict()) == {key for key in expected if not key.startswith("bias")}


def test_initial_values():
    """Weights uniform within sqrt(6 / (rows + columns)), biases and initial states zero."""
    for key, p in it.nn.GRU(D, N, 2, trainable_h0=True).named_parameters():
        if key.startswith("weight"):
            bound = (6 / (N + p.shape[2])) ** 0.5
            assert 0.5 * bound < p.abs().max() <= bound
        else:
            assert not p.any()


def test_representation_and_refusals():
    assert repr(it.nn.GRU(D, N, 2, reset="after")) == "GRU(3, 6, num_layers=2, reset='after')"
    with pytest.raises(ValueError, match="reset must be 'before' or 'after', not 'never'"):
        it.nn.GRU(D, N, reset="never")
    with pytest.raises(TypeError, match="nonlinearity"):
        it.nn.GRU(D, N, nonlinearity="relu")
    with pytest.raises(TypeError, match="hx must be real"):
        gru()(draw(T, B, D), draw(1, B, N) + 0j)
