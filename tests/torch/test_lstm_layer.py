"""`it.nn.LSTM`: torch.nn.LSTM with pairs of states, refusals, graphs and transforms."""

import contextlib

import pytest
import torch

import isometry.torch as it
from layers import B, D, N, T, close, draw


def lstm(*args, **keywords):
    torch.manual_seed(0)
    return it.nn.LSTM(D, N, *args, dtype=torch.float64, **keywords)


def pair(*shape, seed=0):
    return draw(*shape, N, seed=seed), draw(*shape, N, seed=seed + 1)


def twin_of(layer, **keywords):
    two_ways = {"bidirectional": layer.bidirectional, "bias": layer.bias}
    twin = torch.nn.LSTM(D, N, layer.num_layers, dtype=torch.float64, **two_ways, **keywords)
    twin.load_state_dict(layer.state_dict())
    return twin


def alike(found, expected):
    for a, b in zip(found, expected, strict=True):
        close(a, b)


def test_trained_initial_states():
    """h0 and c0 are what a call without states, and a mark, begin with; each has its own gradient."""
    layer, x = lstm(trainable_h0=True), draw(T, B, D)
    with torch.no_grad():
        layer.h0_l0.copy_(draw(N, seed=5))
        layer.c0_l0.copy_(draw(N, seed=6))
    marks = torch.zeros(T, B, dtype=torch.bool)
    marks[0] = True
    own = [t.detach().expand(1, B, N).clone().requires_grad_() for t in (layer.h0_l0, layer.c0_l0)]
    expected = layer(x, own)
    bars = torch.autograd.grad(expected[0].square().sum(), own)
    for found in (layer(x), layer(x, pair(1, B), starts=marks)):
        alike(flat(found), flat(expected))
        trained = torch.autograd.grad(found[0].square().sum(), [layer.h0_l0, layer.c0_l0])
        alike(trained, [bar.sum((0, 1)) for bar in bars])


def test_representation_and_refusals():
    layer = lstm(2, checkpoint="sqrt")
    assert repr(layer) == "LSTM(3, 6, num_layers=2, checkpoint='sqrt')"
    x = draw(T, B, D)
    for hx in (draw(2, B, N), (draw(2, B, N),), (draw(2, B, N), None), 3):
        with pytest.raises(TypeError, match=r"hx must be a pair \(h_0, c_0\)"):
            layer(x, hx)
    for model in (layer, twin_of(layer)):
        with pytest.raises(RuntimeError, match=r"batched 3-D input, hx and cx should also be 3-D but got \(2-D, 3-D\)"):
            model(x, (draw(B, N), draw(2, B, N)))
        with pytest.raises(
            RuntimeError, match=r"unbatched 2-D input, hx and cx should also be 2-D but got \(3-D, 3-D\)"
        ):
            model(x[:, 0], pair(2, B))
        with pytest.raises(RuntimeError, match=r"Expected hidden\[1\] size \(2, 4, 6\), got \[2, 3, 6\]"):
            model(x, (draw(2, B, N), draw(2, 3, N)))
    h, c = pair(2, B)
    for hx in ((h.float(), c.float()), (h.half(), c), (h, c.float()), (h.long(), c), (h.half(), c.bfloat16())):
        for cached in (False, True):
            context = layer.cached() if cached else contextlib.nullcontext()
            with context, pytest.raises(TypeError, match="hx must have the precision of the weights"):
                layer.step(x[0], hx)
    with pytest.raises(RuntimeError, match="not at the same device"):
        layer(x, (h, c.to("meta")))
    with pytest.raises(ValueError, match="checkpoint"):
        lstm(checkpoint="reversible")
    with pytest.raises(TypeError, match="proj_size"):
        lstm(proj_size=2)


@pytest.mark.parametrize("keywords", [{}, {"bidirectional": True, "trainable_h0": True}], ids=["plain", "two ways"])
def test_pairs_in_graphs_and_transforms(keywords):
    """What is tested of a joined state for every layer, with pairs: compiled, exported, vmap, an empty batch."""
    layer, x = lstm(2, **keywords), draw(T, B, D)
    state, marks = pair(2 * (1 + layer.bidirectional), B), torch.zeros(T, B, dtype=torch.bool)
    marks[2], marks[3, 1] = True, True
    call = lambda x, h, c, marks: layer(x, (h, c), starts=marks, start_state=(h, c))
    expected, (h, c) = call(x, *state, marks)
    torch.compiler.reset()
    for found in (
        torch.compile(call, backend="aot_eager", fullgraph=True)(x, *state, marks),
        [t[0] for t in flat(torch.func.vmap(call)(x[None], *(t[None] for t in state), marks[None]))],
    ):
        alike(flat(found), (expected, h, c))
    plain, ends = layer(x, state)
    exported = torch.export.export(layer, (x, state)).module()
    alike(flat(exported(x, state)), (plain, *ends))
    over_h = torch.func.vmap(lambda h: layer(x, (h, state[1]))[0])(state[0][None])
    close(over_h[0], plain)
    out, last = layer(x[:, :0], tuple(t[:, :0] for t in state), starts=marks[:, :0])
    assert out.shape == (T, 0, expected.shape[2]) and all(t.shape == (len(state[0]), 0, N) for t in last)


def flat(found):
    """The output and both states, which may be in one list already."""
    return [found[0], *found[1]] if isinstance(found[1], tuple) else list(found)
