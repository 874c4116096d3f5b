"""Layers in place of torch.nn.RNN: the same numbers, shapes, packed sequences, edge cases and messages."""

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

import tolerance
from layers import COMPLEX, B, D, N, T, build, draw, each_kind, is_its_twin, is_the_textbook_loop, steps


def elman(layer, **keywords):
    """torch.nn.RNN with the same matrices and biases."""
    twin = torch.nn.RNN(D, N, layer.num_layers, bidirectional=layer.bidirectional, dtype=torch.float64, **keywords)
    with torch.no_grad():
        for k in range(layer.num_layers):
            for reverse in (False, True)[: 1 + layer.bidirectional]:
                end = f"_l{k}" + "_reverse" * reverse
                getattr(twin, "weight_ih" + end).copy_(getattr(layer, "weight_ih" + end))
                getattr(twin, "weight_hh" + end).copy_(layer.recurrent_matrix(k, reverse))
                getattr(twin, "bias_ih" + end).copy_(getattr(layer, "bias" + end))
                getattr(twin, "bias_hh" + end).zero_()
    return twin


@pytest.mark.parametrize("name", ["ornn", "scornn"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "two-way"])
@pytest.mark.parametrize("batch_first", [False, True], ids=["time-first", "batch-first"])
def test_a_real_layer_is_torch_rnn_with_its_matrix(name, bidirectional, batch_first):
    layer = build(name, 2, nonlinearity="tanh", bidirectional=bidirectional, batch_first=batch_first)
    is_its_twin(layer, elman(layer, batch_first=batch_first))


@pytest.mark.parametrize("name", ["ornn", "scornn"])
def test_gradients_are_those_of_torch_rnn(name):
    layer = build(name, 2, nonlinearity="tanh", bidirectional=True)
    twin = elman(layer)
    lengths, ends = [1, 5, 3], [f"_l{k}{r}" for k in range(2) for r in ("", "_reverse")]
    grads = []
    for model in (layer, twin):
        sequences = [draw(k, D, seed=k).requires_grad_() for k in lengths]
        h0 = draw(4, 3, N, seed=1).requires_grad_()
        out, last = model(pack_sequence(sequences, enforce_sorted=False), h0)
        loss = (out.data * draw(*out.data.shape, seed=2)).sum() + (last * draw(*last.shape, seed=3)).sum()
        weights = [getattr(model, "weight_ih" + end) for end in ends]
        biases = [getattr(model, ("bias" if model is layer else "bias_ih") + end) for end in ends]
        grads.append(torch.autograd.grad(loss, [*sequences, h0, *weights, *biases]))
    for found, expected in zip(*grads, strict=True):
        tolerance.close(found, expected, tolerance.sequence_gradient("float64", N, T), "gradient")


@pytest.mark.parametrize("name", COMPLEX)
def test_a_complex_layer_is_the_textbook_loop(name):
    layer = build(name, 2, bidirectional=True, nonlinearity="tanh")

    def run(suffix, y, h):
        v, b = (torch.view_as_complex(getattr(layer, kind + suffix)) for kind in ("weight_ih", "bias"))
        w = layer.recurrent_matrix(int(suffix[2]), suffix.endswith("reverse"))

        def step(h, x):
            z = w @ h + v @ x + b
            return torch.complex(z.real.tanh(), z.imag.tanh())

        return steps(step, y + 0j, h)

    is_the_textbook_loop(layer, torch.complex(draw(4, 3, N, seed=1), draw(4, 3, N, seed=2)), run)


@each_kind
def test_an_empty_batch(name):
    """torch.nn.RNN accepts an empty batch, with zero gradients; zero steps are an error."""
    layer, twin = build(name, 2, bidirectional=True), torch.nn.RNN(D, N, 2, bidirectional=True, dtype=torch.float64)
    (out, last), (expected, expected_last) = layer(draw(T, 0, D)), twin(draw(T, 0, D))
    assert out.shape == expected.shape
    assert last.shape == (*expected_last.shape[:2], *layer._state)
    out.abs().sum().backward()
    assert all(p.grad is not None and not p.grad.any() for p in layer.parameters())
    for model in (layer, twin):
        with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0 in RNN"):
            model(draw(0, B, D))


@each_kind
def test_devices_that_differ(name):
    layer, twin = build(name), torch.nn.RNN(D, N, dtype=torch.float64)
    far = torch.empty(T, B, D, dtype=torch.float64, device="meta")
    for with_h0 in (False, True):
        messages = []
        for model, state in ((layer, layer._state), (twin, (N,))):
            h0 = torch.empty(1, B, *state, dtype=torch.float64, device="meta")
            with pytest.raises(RuntimeError, match="not at the same device") as info:
                model(*((draw(T, B, D), h0) if with_h0 else (far,)))
            messages.append(str(info.value))
        assert messages[0] == messages[1]
