"""`it.nn.DeltaProduct`: the textbook per sequence, parameters, orthogonality, steps."""

import contextlib
import itertools

import pytest
import torch
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

import isometry.torch as it
from layers import B, D, N, T, build, close, draw, each_form, formed, is_the_textbook_loop, named, states
from reference.delta import delta_rule


def product(*args, **keywords):
    return build("delta-product", *args, **keywords)


def drawn(layer, end, x):
    """The arguments of the delta rule for one sequence x (T, features), from the stored parameters."""
    m, h, n = layer.householders, layer.heads, layer.hidden_size
    stored = {key: p.detach() for key, p in layer.named_parameters()}
    own, w = stored["weight_ih" + end], stored["transition_weight" + end]
    b, c = (stored.get(key + end) for key in ("bias", "transition_bias"))
    values, moves = (x @ a.T + (0 if bias is None else bias) for a, bias in ((own, b), (w, c)))
    steps, rows = len(x), len(x) * m
    q, v = F.silu(values[:, :n]).view(1, steps, h, -1), F.silu(values[:, n:]).reshape(1, rows, h, -1)
    k = F.silu(moves[:, : m * n]).reshape(1, rows, h, -1)
    beta = torch.sigmoid(moves[:, m * n : m * (n + h)]).reshape(1, rows, h) * (2 if layer.negative else 1)
    g = None
    if layer.gate:
        g = -stored["log_decay" + end].exp() * F.softplus(moves[None, :, m * (n + h) :])
    return (q, k, v, beta), {"g": g, "householders": m, "scale": 1.0, "normalise": True}


@each_form("delta-product")
def test_the_layer_is_the_textbook_loop(form):
    layer = formed(form, 2, bidirectional=True)

    def run(suffix, y, state):
        arrays, own = drawn(layer, suffix, y)
        own = {key: t.numpy() if isinstance(t, torch.Tensor) else t for key, t in own.items()}
        o, last = delta_rule(*(a.numpy() for a in arrays), **own, initial_state=state[None].numpy())
        return torch.from_numpy(o[0]).flatten(1), torch.from_numpy(last[0])

    is_the_textbook_loop(layer, states(layer, 4, 3, seed=1), run)


def test_names_and_shapes_of_the_state_dict():
    layer = it.nn.DeltaProduct(D, N, 2, heads=3, householders=2, bidirectional=True, trainable_h0=True)
    rows = 2 * N + 2 * 3 + 3
    own = {"transition_bias": (rows,), "log_decay": (3,), "bias": (3 * N,), "h0": (3, 2, 2)}
    expected = named(lambda d: {"weight_ih": (3 * N, d), "transition_weight": (rows, d), **own})
    assert {key: tuple(value.shape) for key, value in layer.state_dict().items()} == expected
    own = {id(p) for p in layer.recurrent_parameters()}
    names = {name.partition("_l0")[0].partition("_l1")[0] for name, p in layer.named_parameters() if id(p) in own}
    assert names == {"transition_weight", "transition_bias", "log_decay"} and len(own) == 12
    layer = it.nn.DeltaProduct(D, N, bias=False, gate=False)
    assert {k: tuple(p.shape) for k, p in layer.named_parameters()} == {
        "weight_ih_l0": (2 * N, D),
        "transition_weight_l0": (N + 1, D),
    }


@pytest.mark.parametrize("bias", [True, False])
def test_initial_values(bias):
    """Weights uniform within sqrt(6 / (n + columns)), biases of keys within 2, of rates within 6, all else zero but the
    gates, whose logarithms lie in -16 .. -1 times 1e-3 .. 1e-1 where the input is zero.
    """
    layer = it.nn.DeltaProduct(D, 24, 2, heads=4, trainable_h0=True, bias=bias, dtype=torch.float64)
    for k, features in enumerate((D, 24)):
        for name in ("weight_ih", "transition_weight"):
            bound = (6 / (24 + features)) ** 0.5
            assert 0.5 * bound < getattr(layer, f"{name}_l{k}").abs().max() <= bound
        assert not getattr(layer, f"h0_l{k}").any()
        if bias:
            keys, rates, _ = getattr(layer, f"transition_bias_l{k}").split((24, 4, 4))
            assert not getattr(layer, f"bias_l{k}").any()
            assert 1 < keys.abs().max() <= 2 and 2 < rates.abs().max() <= 6
        _, given = drawn(layer, f"_l{k}", torch.zeros(1, features, dtype=torch.float64))
        assert (given["g"] <= -1e-3).all() and (given["g"] >= -1.6).all()


@pytest.mark.parametrize("last_only", [False, True])
def test_a_step_returns_the_output_too(last_only):
    """In every form of input, inside `cached` too; what a step gives is what the sequence gives."""
    layer, x = product(2, batch_first=True, last_only=last_only), draw(T, B, D)
    expected = layer(x.transpose(0, 1))
    for recorded, around in ((True, contextlib.nullcontext()), (False, layer.cached())):
        state = alone = None
        with torch.set_grad_enabled(recorded), around:
            for x_t in x:
                output, state = layer.step(x_t, state)
                single, alone = layer.step(x_t[1], alone)
        close(output, expected[0] if last_only else expected[0][:, -1], "output")
        close(state, expected[1], "state")
        close(single, output[1], "without a batch")
        close(alone, state[:, 1], "its state")
    with pytest.raises(ValueError, match="one direction"):
        product(bidirectional=True).step(x[0])


def test_representation_and_refusals():
    assert repr(it.nn.DeltaProduct(D, N, 2, heads=2, gate=False)) == (
        "DeltaProduct(3, 6, num_layers=2, heads=2, householders=1, gate=False, negative=True)"
    )
    for error, words, keywords in (
        (ValueError, "heads must be a divisor of hidden_size = 6, not 4", {"heads": 4}),
        (ValueError, "heads must be at least 1", {"heads": 0}),
        (TypeError, "householders must be an integer", {"householders": 2.0}),
        (TypeError, "gate must be a bool", {"gate": 1}),
        (TypeError, "negative must be a bool", {"negative": "no"}),
        (ValueError, "checkpoint must be 'none', not 'sqrt'", {"checkpoint": "sqrt"}),
    ):
        with pytest.raises(error, match=words):
            it.nn.DeltaProduct(D, N, **keywords)
    layer = product()
    with pytest.raises(RuntimeError, match=r"Expected hidden size \(1, 4, 2, 3, 3\), got \[1, 4, 2, 3, 2\]"):
        layer(draw(T, B, D), draw(1, B, 2, 3, 2))
    with pytest.raises(RuntimeError, match="For batched 3-D input, hx should be 5-D but got 3-D tensor"):
        layer(draw(T, B, D), draw(1, B, N))
    with pytest.raises(RuntimeError, match="For unbatched 2-D input, hx should be 4-D but got 2-D tensor"):
        layer(draw(T, D), draw(1, N))


FORMS = ({}, {"gate": False}, {"bidirectional": True}, {"num_layers": 2, "heads": 2, "householders": 3})


@pytest.mark.parametrize("own", FORMS, ids=str)
def test_marks_that_vmap_maps_over(own):
    """Three members each: the layer on the marks of one member after another, or of all."""
    for batch_first, last_only in itertools.product((False, True), repeat=2):
        layer = product(**own, batch_first=batch_first, last_only=last_only)
        sizes = (3, B, T) if batch_first else (3, T, B)
        x, starts = draw(*sizes, D), torch.rand(sizes, generator=torch.Generator().manual_seed(0)) < 0.4
        hx = draw(3, layer.num_layers * (1 + layer.bidirectional), B, *layer._state)
        call = lambda x, hx, starts: layer(x, hx, starts=starts)
        for marks, dims in ((starts, 0), (starts[:1].expand_as(starts), (0, 0, None))):
            found = torch.vmap(call, dims)(x, hx, marks if dims == 0 else marks[0])
            for member, of in enumerate(zip(x, hx, marks, strict=True)):
                for a, b in zip(found, call(*of), strict=True):
                    close(a[member], b)
    layer = product(trainable_h0=True)
    with pytest.raises(ValueError, match="^starts must be the same for all members of a vmap"):
        torch.vmap(lambda x, starts: layer(x, starts=starts))(draw(3, T, B, D), torch.ones(3, T, B, dtype=torch.bool))


@pytest.mark.parametrize("own", FORMS, ids=str)
def test_outputs_and_states_are_contiguous(own):
    """In every layout: sequences or steps first, one sequence, marks, a packed sequence, a step; the last outputs alone
    are those of all."""
    for batch_first in (False, True):
        layer, lean = (product(**own, batch_first=batch_first, last_only=last_only) for last_only in (False, True))
        x = draw(B, T, D) if batch_first else draw(T, B, D)
        marks = torch.zeros(x.shape[:2], dtype=torch.bool)
        marks[2] = True
        packed = pack_sequence([draw(k, D) for k in (T, 2, 1)])
        for given, more in ((x, {}), (x, {"starts": marks}), (draw(T, D), {}), (packed, {})):
            (output, state), (last, same) = layer(given, **more), lean(given, **more)
            padded, lengths = pad_packed_sequence(output) if given is packed else (output, None)
            assert padded.is_contiguous() and all(t.is_contiguous() for t in (state, last, same))
            padded = padded.transpose(0, 1) if batch_first and padded.dim() == 3 and lengths is None else padded
            ends = padded[-1] if lengths is None else padded[lengths - 1, torch.arange(3)]
            assert torch.equal(last[..., :N], ends[..., :N]) and torch.equal(last[..., N:], padded[0][..., N:])
            assert torch.equal(same, state)
        if not layer.bidirectional:
            assert all(t.is_contiguous() for t in layer.step(draw(B, D)))
