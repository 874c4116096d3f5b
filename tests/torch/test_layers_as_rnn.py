"""Layers in place of torch.nn.RNN: the numbers of their definition, packed sequences, edge cases and messages."""

import numpy as np
import pytest
import torch

from layers import (
    CELL_LAYERS,
    FORMS,
    FREE,
    IN_BLOCKS,
    LAYERS,
    PLAIN,
    B,
    D,
    N,
    T,
    build,
    draw,
    each_kind,
    formed,
    is_the_textbook_loop,
    steps,
)
from registry.cells import CELLS

IN_BLOCKS = [form for form, (kind, _) in IN_BLOCKS.items() if kind not in CELL_LAYERS]
LAYER_ALONE = {"transition", "capacity", "nonlinearity"}  # keywords that the function of a cell does not have
PARAMETERS = {"w": "weight_hh", "u": "weight_ih", "b": "bias"}


@pytest.mark.parametrize("form", [*LAYERS, *FREE, *PLAIN, *IN_BLOCKS])
def test_a_layer_is_the_textbook_loop_with_its_matrix(form):
    layer = formed(form, 2, bidirectional=True, nonlinearity="tanh")
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


@pytest.mark.parametrize("form", [form for form, (kind, _) in FORMS.items() if kind in CELL_LAYERS and kind != "lstm"])
@pytest.mark.parametrize("nonlinearity", ["tanh", "modrelu"])
def test_the_layer_is_its_cell(form, nonlinearity):
    """Every sequence alone, by the definition in NumPy; with torch's parameters a layer is compared with torch's."""
    kind = FORMS[form][0]
    make, cell = CELL_LAYERS[kind], CELLS[kind]
    own = {"nonlinearity": nonlinearity} if "nonlinearity" in make._own_keywords else {}
    layer = formed(form, 2, bidirectional=True, **own)
    keywords = {name: getattr(layer, name) for name in set(make._own_keywords) - LAYER_ALONE}
    keywords |= {"activation": nonlinearity} if own else {}
    arrays = {PARAMETERS.get(name, name): name for name in (*cell.arrays, "hidden_bias", "activation_bias")}

    def run(suffix, y, h):
        p = {name.removesuffix(suffix): t.numpy() for name, t in layer.state_dict().items() if name.endswith(suffix)}
        if form == "gru-after":  # the second biases of z and r add to the first
            second = p["hidden_bias"]
            p["bias"], p["hidden_bias"] = p["bias"] + second * [[1], [1], [0]], second[2]
        given = {arrays[name]: a for name, a in p.items() if name in arrays}
        given |= dict(zip(cell.first, np.split(h.numpy()[None], len(cell.first), -1), strict=True))
        if hasattr(layer, "recurrent_matrix"):
            w = layer.recurrent_matrix(int(suffix[2]), suffix.endswith("reverse"))
            given["transition"] = w.detach().numpy()
        states = torch.from_numpy(cell.states(x=y.detach().numpy()[:, None], **given, **keywords))[: len(y), 0]
        return states[:, :N], states[-1]

    is_the_textbook_loop(layer, draw(4, 3, *layer._state, seed=1), run)


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
