"""Layers in place of torch.nn.RNN: the same numbers, shapes, packed sequences, edge cases and messages."""

import pytest
import torch

from layers import FREE, LAYERS, PLAIN, B, D, N, T, build, draw, each_kind, is_the_textbook_loop, steps


@pytest.mark.parametrize("name", [*LAYERS, *FREE, *PLAIN])
def test_a_layer_is_the_textbook_loop_with_its_matrix(name):
    layer = build(name, 2, bidirectional=True, nonlinearity="tanh")
    value = torch.view_as_complex if layer.is_complex else lambda t: t

    def run(suffix, y, h):
        v, b = value(getattr(layer, "weight_ih" + suffix)), layer._bias(suffix)
        w = layer.recurrent_matrix(int(suffix[2]), suffix.endswith("reverse"))

        def step(h, x):
            z = w @ h + v @ x + b
            return torch.complex(z.real.tanh(), z.imag.tanh()) if layer.is_complex else z.tanh()

        return steps(step, y.to(v.dtype), h)

    h0 = draw(4, 3, N, seed=1)
    is_the_textbook_loop(layer, torch.complex(h0, draw(4, 3, N, seed=2)) if layer.is_complex else h0, run)


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
