"""Layers with heads: what is their own beside the laws of every form of a layer, and those of blocks."""

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

import isometry.torch as it
import tolerance
from device_calls import counted
from isometry import _core
from isometry.torch._dispatch.mode import DEVICE
from isometry.torch.sequences import _sequence
from layers import CELL_LAYERS, IN_BLOCKS, KINDS, B, D, N, T, build, close, draw, whole

# without a W, without a map from W to its parameters, with few layers or reflections, or a W that is not orthogonal
UNREACHED = ("gru", "gru-after", "lstm", "soft-ornn", "urnn", "eurnn", "goru", "ornn-few", "ornn-soft")
each_in_blocks = pytest.mark.parametrize("form", IN_BLOCKS)


def made(form, units=N, **keywords):
    """As it is drawn."""
    kind, own = IN_BLOCKS[form]
    return {**KINDS, **CELL_LAYERS}[kind](D, units, dtype=torch.float64, **{**own, **keywords})


@pytest.mark.parametrize("name", ["ornn", "rnn", "goru", "scornn"])
@pytest.mark.parametrize("nonlinearity", ["oplu", "oplu_halves", "modrelu_realrep"])
@pytest.mark.parametrize("heads", [1, 2, 3, 6])
def test_pairs_of_all_units(name, nonlinearity, heads):
    """Pairs that lie in two blocks too: blocks of one unit, halves of all of them; cached steps have whole matrices."""
    layer, x, states = build(name, heads=heads, nonlinearity=nonlinearity), draw(T, B, D), [None]
    with torch.no_grad(), layer.cached():
        for x_t in x:
            states.append(layer.step(x_t, states[-1]))
    close(layer(x)[0], torch.cat(states[1:]))


@each_in_blocks
def test_a_head_is_drawn_as_a_small_layer(form):
    large, small = made(form, 96, heads=3), [made(form, 32, heads=1) for _ in range(3)]
    own = dict(large.named_parameters())
    for key, p in small[0].named_parameters():
        if own[key].dim() > p.dim():
            drawn = torch.stack([dict(layer.named_parameters())[key] for layer in small]).detach()
            assert own[key].shape == drawn.shape
            spread = lambda t: t.detach().square().mean().sqrt()
            assert 0.7 < spread(own[key]) / spread(drawn) < 1.4 or not drawn.any()
            assert not torch.equal(own[key][0], own[key][1]) or not own[key].any()


@pytest.mark.parametrize("form", [form for form in IN_BLOCKS if form.removesuffix("-heads") not in UNREACHED])
def test_matrices_are_set(form):
    layer, other = made(form), made(form)
    with torch.no_grad():
        for p in other.recurrent_parameters():
            p.copy_(p.flip(0))  # the blocks in another order
    w = other.recurrent_matrix().detach()
    layer.set_recurrent_matrix(w)
    close(layer.recurrent_matrix(), w)
    before = {key: t.clone() for key, t in layer.state_dict().items()}
    with pytest.raises(ValueError, match=r"heads = 2 blocks of the same size: the numbers outside of them are \d"):
        layer.set_recurrent_matrix(w.roll(1, 0))
    assert all(torch.equal(before[key], value) for key, value in layer.state_dict().items())


def test_transitions_of_heads():
    others = iter([it.Cayley.random(3), it.Householder.random(3)])
    for wrong in (
        lambda n: it.Cayley.random(n).H,
        lambda n: it.BoundedSvd.random(n, margin=float(torch.rand(()))),
        lambda _: next(others),
    ):
        with pytest.raises(ValueError, match="transition must"):
            it.nn.RNN(D, N, heads=2, transition=wrong)
    sizes = []
    it.nn.RNN(D, N, 2, heads=3, transition=lambda n: sizes.append(n) or it.Exponential.random(n))
    assert sizes == [2] * 6


@pytest.mark.parametrize("form", ["rnn-heads", "lstm-heads", "gru-after-heads"])
def test_torch_has_whole_matrices(form):
    layer = whole(form, 2, bidirectional=True)
    x = pack_sequence([draw(k, D, seed=k) for k in (3, 5, 1)], enforce_sorted=False)
    for found, expected in zip(it.nn.to_torch(layer)(x), layer(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@each_in_blocks
def test_heads_share_the_operations_of_a_device(form, monkeypatch):
    x, marks, counts = draw(T, 4, D), torch.zeros(T, 4, dtype=torch.bool), []
    marks[2, 1] = True
    packed = pack_sequence([draw(k, D, seed=k) for k in (T, 3, 2, 2)])
    for heads in (2, 4):
        layer = made(form, 8, heads=heads)

        def score(given, **marked):
            y = layer(given, **marked)[0]
            y = y if given is x else y.data
            return y, *torch.autograd.grad(y.abs().square().sum(), list(layer.parameters()))

        ways = (x, {}), (x, {"starts": marks}), (packed, {})
        expected = [score(given, **marked) for given, marked in ways]
        with monkeypatch.context() as patched:
            patched.setattr(_sequence, "mode", lambda *_: DEVICE)
            for (given, marked), values in zip(ways, expected, strict=True):
                for a, b in zip(score(given, **marked), values, strict=True):
                    tolerance.close(a.detach(), b.detach(), tolerance.sequence_gradient("float64", N, T))
            with torch.no_grad():
                counts.append(counted(lambda layer=layer: layer(x))[0])
    assert counts[1] < 1.2 * counts[0]


@pytest.mark.parametrize("name", ["ScoRNN", "ScuRNN", "ORNN", "GORU", "GRU", "LSTM", "RNN"])
def test_steps_form_no_whole_matrix(name, monkeypatch):
    """What a cached step reads is of the size of the blocks."""
    heads, n = 8, 64
    layer, calls, run = getattr(it.nn, name)(D, n, heads=heads), [], _core.sequence
    monkeypatch.setattr(_core, "sequence", lambda *given: calls.append(given) or run(*given))
    with torch.no_grad(), layer.cached():
        state = layer.step(torch.randn(B, D))
        layer.step(torch.randn(B, D), state)
    most = 8 * (n // heads) * n  # the matrices of four gates, and as many numbers of U
    for _, transition, arrays, *_, packs, members in calls:
        read = [*arrays, *(transition[1] if transition else ())]
        assert members == heads
        assert all(a is None or a.reshape(-1).shape[0] <= most for a in read)
        assert packs.size <= heads * 8 * 64 * (n // heads + D)  # whole vectors
    assert len(calls) == 2
