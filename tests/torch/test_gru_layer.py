"""`it.nn.GRU`: torch.nn.GRU with reset "after", the textbook with "before", parameters, modes of torch, training."""

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

each_reset = pytest.mark.parametrize("reset", ["before", "after"])


def gru(*args, **keywords):
    return build("gru", *args, **keywords)


def twin_of(layer, **keywords):
    """torch.nn.GRU with the same matrices and biases, whose order is r, z, h."""
    twin = torch.nn.GRU(D, N, layer.num_layers, bidirectional=layer.bidirectional, dtype=torch.float64, **keywords)
    with torch.no_grad():
        for key, p in twin.named_parameters():
            kind, end = key.split("_l")
            if kind == "bias_hh":
                p.zero_()
            else:
                own = getattr(layer, {"bias_ih": "bias"}.get(kind, kind) + "_l" + end)
                p.copy_(own[[1, 0, 2]].flatten(0, 1))
    return twin


@pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "two-way"])
@pytest.mark.parametrize("batch_first", [False, True], ids=["time-first", "batch-first"])
def test_reset_after_is_torch_gru(bidirectional, batch_first):
    layer = gru(2, reset="after", bidirectional=bidirectional, batch_first=batch_first)
    twin, states = twin_of(layer, batch_first=batch_first), 4 if bidirectional else 2
    x, h0 = draw(B, T, D) if batch_first else draw(T, B, D), draw(states, B, N, seed=1)
    for arguments in ((x,), (x, h0), (draw(T, D),), (draw(T, D), h0[:, 0])):
        for found, expected in zip(layer(*arguments), twin(*arguments), strict=True):
            close(found, expected)
    for lengths in ([5, 4, 4, 1], [1, 4, 5, 4], [3, 3, 3, 3]):
        packed = pack_sequence([draw(k, D, seed=k) for k in lengths], enforce_sorted=lengths[0] == 5)
        (found, last), (expected, expected_last) = layer(packed, h0), twin(packed, h0)
        close(found.data, expected.data, "packed output")
        close(last, expected_last, "packed h_n")


def test_reset_before_is_the_textbook_loop():
    """Two layers, two directions, packed: every sequence alone, step by step, from the stored parameters."""
    layer, lengths, h0 = gru(2, bidirectional=True), [2, 5, 1], draw(4, 3, N, seed=1)
    sequences = [draw(k, D, seed=k) for k in lengths]
    packed, last = layer(pack_sequence(sequences, enforce_sorted=False), h0)
    out, _ = pad_packed_sequence(packed)
    for q, y in enumerate(sequences):
        for k in range(2):
            ways = []
            for r, end in enumerate((f"_l{k}", f"_l{k}_reverse")):
                w, u, b = (getattr(layer, kind + end) for kind in ("weight_hh", "weight_ih", "bias"))
                h, states = h0[2 * k + r, q], []
                for step in y.flip(0) if r else y:
                    drive = u @ step + b
                    gate_z, gate_r = torch.sigmoid(w[0] @ h + drive[0]), torch.sigmoid(w[1] @ h + drive[1])
                    c = torch.tanh(w[2] @ (gate_r * h) + drive[2])
                    h = gate_z * h + (1 - gate_z) * c
                    states.append(h)
                close(last[2 * k + r, q], h, "h_n")
                ways.append(torch.stack(states[::-1] if r else states))
            y = torch.cat(ways, -1)
        close(out[: lengths[q], q], y, f"sequence {q}")


def test_names_and_shapes_of_the_state_dict():
    layer = it.nn.GRU(D, N, 2, bidirectional=True, trainable_h0=True)
    expected = {}
    for k in range(2):
        for way in ("", "_reverse"):
            shapes = {"weight_hh": (3, N, N), "weight_ih": (3, N, 2 * N if k else D), "bias": (3, N), "h0": (N,)}
            expected |= {f"{key}_l{k}{way}": shape for key, shape in shapes.items()}
    assert {key: tuple(value.shape) for key, value in layer.state_dict().items()} == expected
    layer = it.nn.GRU(D, N, 2, bidirectional=True, trainable_h0=True, bias=False)
    assert set(layer.state_dict()) == {key for key in expected if not key.startswith("bias")}


def test_initial_values():
    """Weights uniform within sqrt(6 / (rows + columns)), biases and initial states zero, from the seed."""
    torch.manual_seed(1)
    layer = it.nn.GRU(D, N, 2, trainable_h0=True)
    for key, p in layer.named_parameters():
        if key.startswith("weight"):
            bound = (6 / (N + p.shape[2])) ** 0.5
            assert 0.5 * bound < p.abs().max() <= bound
        else:
            assert not p.any()
    before = {key: p.clone() for key, p in layer.named_parameters()}
    torch.manual_seed(1)
    layer.reset_parameters()
    assert all(torch.equal(p, before[key]) for key, p in layer.named_parameters())


def test_representation_and_refusals():
    assert repr(it.nn.GRU(D, N, 2, reset="after")) == "GRU(3, 6, num_layers=2, reset='after')"
    with pytest.raises(ValueError, match="reset must be 'before' or 'after', not 'never'"):
        it.nn.GRU(D, N, reset="never")
    with pytest.raises(TypeError, match="nonlinearity"):
        it.nn.GRU(D, N, nonlinearity="relu")
    with pytest.raises(TypeError, match="hx must be real"):
        gru()(draw(T, B, D), draw(1, B, N) + 0j)


@each_reset
def test_a_trained_initial_state_and_none_at_all(reset):
    starts_from_its_trained_state(gru(reset=reset, trainable_h0=True))
    plain = it.nn.GRU(D, N, reset=reset, bias=False, dtype=torch.float64)
    assert not plain(torch.zeros(T, B, D, dtype=torch.float64))[0].any()


@each_reset
def test_compiles_in_one_piece(reset):
    """No graph break, for two layers and directions."""
    torch.compiler.reset()
    layer, x = gru(2, reset=reset, bidirectional=True), draw(T, B, D)
    close(torch.compile(layer, backend="aot_eager", fullgraph=True)(x)[0], layer(x)[0])


def test_per_sample_gradients():
    same_per_sample_gradients(gru())


def test_training_in_single_precision_goes_the_way_of_double():
    trains_as_in_double(gru(dtype=torch.float32))
