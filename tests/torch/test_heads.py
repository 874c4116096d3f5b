"""Layers with heads: block-diagonal recurrent matrices. `test_every_layer` and the laws of blocks have the rest."""

import functools

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

import isometry.torch as it
import tolerance
from device_calls import counted
from isometry.torch._dispatch.mode import DEVICE
from isometry.torch.sequences import _sequence
from layers import T, draw

D, N, HEADS = 3, 8, 2
LAYERS = {
    name: getattr(it.nn, name)
    for name in (
        "ORNN", "UnitaryORNN", "ScoRNN", "ScuRNN", "ExpRNN", "EURNN", "URNN", "SoftORNN", "FullCapacityURNN", "KRU",
        "RNN", "GORU", "GRU", "LSTM",
    )
}  # fmt: skip
LAYERS |= {f"GORU, {kind}": functools.partial(it.nn.GORU, transition=kind) for kind in ("householder", "cayley")}
LAYERS |= {
    "GRU, after": functools.partial(it.nn.GRU, reset="after"),
    "RNN, a mesh": functools.partial(it.nn.RNN, transition=lambda n: it.Mesh.random(n, layers=2)),
    "ORNN, soft": functools.partial(it.nn.ORNN, sign="soft"),
    "ORNN, few": functools.partial(it.nn.ORNN, reflections=2),
}
# without a W, without a map from W to its parameters, with few layers or reflections, or a W that is not orthogonal
UNREACHED = ("GRU", "GRU, after", "LSTM", "SoftORNN", "URNN", "EURNN", "GORU", "RNN, a mesh", "ORNN, few", "ORNN, soft")
each_layer = pytest.mark.parametrize("name", LAYERS)
CLOSE = tolerance.sequence("float64", N, T)


def close(found, expected, what="value"):
    if isinstance(found, tuple):
        for a, b in zip(found, expected, strict=True):
            close(a, b, what)
    else:
        tolerance.close(found.detach(), expected.detach(), CLOSE, what)


def build(name, *args, heads=HEADS, **keywords):
    torch.manual_seed(0)
    layer = LAYERS[name](D, N, *args, heads=heads, dtype=torch.float64, **keywords)
    with torch.no_grad():
        for key, p in layer.named_parameters():
            # U and V of SoftORNN and W of the full-capacity uRNN are orthogonal
            p.add_(0 if key.startswith(("weight_l", "u_l", "v_l")) else 0.1 * torch.randn_like(p))
    return layer


def loop(layer, x, state=None):
    """Step by step, inside `cached`, where the whole matrices are held."""
    outputs = []
    with torch.no_grad(), layer.cached():
        for x_t in x:
            state = layer.step(x_t, state)
            outputs.append((state[0] if isinstance(state, tuple) else state)[-1])
    return torch.stack(outputs), state


@each_layer
@pytest.mark.parametrize("layers", [1, 2])
def test_steps_with_whole_matrices(name, layers):
    layer, x = build(name, layers), draw(T, 4, D)
    output, last = layer(x)
    expected, state = loop(layer, x)
    close(output, expected, "output")
    close(last, state, "last states")
    with layer.cached():
        close(layer(x)[0], output, "inside cached")


@each_layer
@pytest.mark.parametrize("layers", [1, 2])
def test_steps_of_one_sequence(name, layers):
    """Without an axis of sequences, from a trained state and from that of the step before."""
    layer, x = build(name, layers, trainable_h0=True), draw(T, 1, D)
    each = lambda f, state: tuple(map(f, state)) if isinstance(state, tuple) else f(state)
    with torch.no_grad(), layer.cached():
        state = whole = None
        for x_t in x:
            alone, state = layer(x_t, state)
            whole = layer.step(x_t, whole)
            assert alone.shape == (1, layer.output_size // (2 if alone.is_complex() else 1))
            close(each(lambda s: s[:, None], state), whole)
            close(each(lambda s: s[:, None], layer.step(x_t[0])), layer.step(x_t))
    close(layer(x[:, 0])[1], state, "the sequence")


@each_layer
def test_directions_packing_and_checkpoints(name):
    keywords = {"bidirectional": True, "num_layers": 2, "trainable_h0": True}
    layer, sequences = build(name, **keywords), [draw(k, D, seed=k) for k in (3, 5, 1)]
    packed, last = layer(pack_sequence(sequences, enforce_sorted=False))
    padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(packed)
    for i, x in enumerate(sequences):
        alone, own = layer(x[:, None])
        close(padded[: lengths[i], i], alone[:, 0], f"sequence {i}")
        pick = lambda t: tuple(s[:, i] for s in t) if isinstance(t, tuple) else t[:, i]
        first = lambda t: tuple(s[:, 0] for s in t) if isinstance(t, tuple) else t[:, 0]
        close(pick(last), first(own), f"last state {i}")
    x = draw(T, 4, D)
    score = lambda net: torch.autograd.grad(net(x)[0].abs().square().sum(), list(net.parameters()))
    expected = score(layer)
    layer.checkpoint = "sqrt"
    for found, one in zip(score(layer), expected, strict=True):
        close(found, one, "gradient with a checkpoint")
    short = build(name, **keywords, last_only=True)
    close(short(x)[1], build(name, **keywords)(x)[1], "last_only")


@each_layer
def test_pieces_between_marks(name):
    layer, x, marks = build(name), draw(T, 2, D), torch.zeros(T, 2, dtype=torch.bool)
    marks[2] = True
    close(layer(x, starts=marks)[0], torch.cat([layer(x[:2])[0], layer(x[2:])[0]]))


@pytest.mark.parametrize("name", ["ORNN", "RNN", "GORU", "ScoRNN"])
@pytest.mark.parametrize("nonlinearity", ["oplu", "oplu_halves", "modrelu_realrep"])
@pytest.mark.parametrize("heads", [1, 2, 4, 8])
def test_pairs_of_all_units(name, nonlinearity, heads):
    """Pairs that lie in two blocks too: blocks of one unit, halves of all of them."""
    layer, x = build(name, heads=heads, nonlinearity=nonlinearity), draw(T, 4, D)
    close(layer(x)[0], loop(layer, x)[0])


@each_layer
def test_a_head_is_drawn_as_a_small_layer(name):
    wide = LAYERS[name](D, 96, heads=3, dtype=torch.float64)
    small = [LAYERS[name](D, 32, dtype=torch.float64) for _ in range(3)]
    own = dict(wide.named_parameters())
    for key, p in small[0].named_parameters():
        if own[key].dim() > p.dim():
            drawn = torch.stack([dict(layer.named_parameters())[key] for layer in small]).detach()
            assert own[key].shape == drawn.shape
            spread = lambda t: t.detach().square().mean().sqrt()
            assert 0.7 < spread(own[key]) / spread(drawn) < 1.4 or not drawn.any()
            assert not torch.equal(own[key][0], own[key][1]) or not own[key].any()


@pytest.mark.parametrize("name", [name for name in LAYERS if name not in UNREACHED])
def test_matrices_are_set(name):
    layer, other = build(name), build(name)
    with torch.no_grad():
        for p in other.recurrent_parameters():
            p.copy_(p.flip(0))  # the blocks in another order
    w = other.recurrent_matrix().detach()
    layer.set_recurrent_matrix(w)
    tolerance.close(layer.recurrent_matrix().detach(), w, CLOSE)
    before = layer.state_dict()
    mixed = w.roll(1, 0)
    with pytest.raises(ValueError, match=r"heads = 2 blocks of the same size: the numbers outside of them are \d"):
        layer.set_recurrent_matrix(mixed)
    assert all(torch.equal(before[key], value) for key, value in layer.state_dict().items())


def test_transitions_of_heads():
    others = iter([it.Cayley.random(4), it.Householder.random(4)])
    for wrong in (
        lambda n: it.Cayley.random(n).H,
        lambda n: it.BoundedSvd.random(n, margin=float(torch.rand(()))),
        lambda _: next(others),
    ):
        with pytest.raises(ValueError, match="transition must"):
            it.nn.RNN(D, N, heads=2, transition=wrong)
    sizes = []
    it.nn.RNN(D, N, 2, heads=4, transition=lambda n: sizes.append(n) or it.Exponential.random(n))
    assert sizes == [2] * 8


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU, after"])
def test_torch_has_whole_matrices(name):
    layer, x = build(name, 2, bidirectional=True), draw(T, 4, D)
    close(it.nn.to_torch(layer)(x), layer(x))


def test_layers_without_heads():
    for name in ("RUM", "DeltaProduct"):
        layer = getattr(it.nn, name)(D, N)
        assert layer(draw(T, 2, D, dtype=torch.float32))[0].shape == (T, 2, N)
    with pytest.raises(TypeError, match="heads must be 1 for RUM"):
        it.nn.RUM(D, N, heads=2)
    for wrong, error in ((3, ValueError), (0, ValueError), (2.0, TypeError), (None, TypeError), ("2", TypeError)):
        with pytest.raises(error, match="heads"):
            it.nn.ScoRNN(D, N, heads=wrong)


@pytest.mark.parametrize("name", ["ScoRNN", "ScuRNN", "GRU", "LSTM"])
def test_graphs_and_transforms(name):
    layer, x = build(name), draw(T, 2, D)
    expected = layer(x)[0]
    close(torch.compile(lambda x: layer(x)[0], fullgraph=True, backend="aot_eager")(x), expected, "compiled")
    close(torch.export.export(layer, (x,)).module()(x)[0], expected, "exported")
    own = dict(layer.named_parameters())
    call = lambda own, x: torch.func.functional_call(layer, own, (x,))[0].abs().square().sum()
    found = torch.func.vmap(torch.func.grad(call), (None, 0))(own, torch.stack([x, 2 * x]))
    for i, factor in enumerate((1, 2)):
        one = torch.autograd.grad(call(own, factor * x), list(own.values()))
        for (key, many), one_bar in zip(found.items(), one, strict=True):
            close(many[i], one_bar, key)


@each_layer
def test_heads_share_the_operations_of_a_device(name, monkeypatch):
    x, marks, counts = draw(T, 4, D), torch.zeros(T, 4, dtype=torch.bool), []
    marks[2, 1] = True
    packed = pack_sequence([draw(k, D, seed=k) for k in (T, 3, 2, 2)])
    for heads in (2, 4):
        layer = build(name, heads=heads)

        def score(given, **marked):
            y = layer(given, **marked)[0]
            y = y if given is x else y.data
            return y, *torch.autograd.grad(y.abs().square().sum(), list(layer.parameters()))

        ways = (x, {}), (x, {"starts": marks}), (packed, {})
        expected = [score(given, **marked) for given, marked in ways]
        with monkeypatch.context() as patched:
            patched.setattr(_sequence, "mode", lambda *_: DEVICE)
            for (given, marked), values in zip(ways, expected, strict=True):
                close(score(given, **marked), values)
            with torch.no_grad():
                counts.append(counted(lambda layer=layer: layer(x))[0])
    assert counts[1] < 1.2 * counts[0]
