"""Layers whose states are pairs: trained ones, those before marks, refusals, graphs and transforms."""

import contextlib

import pytest
import torch

from layers import PAIRS, B, D, N, T, close, draw
from registry.cells import CELLS

each_pair = pytest.mark.parametrize("name", PAIRS)


def built(name, *args, **keywords):
    torch.manual_seed(0)
    return PAIRS[name](D, N, *args, dtype=torch.float64, **keywords)


def pair(*shape, seed=0):
    return draw(*shape, N, seed=seed), draw(*shape, N, seed=seed + 1)


def alike(found, expected):
    for a, b in zip(found, expected, strict=True):
        close(a, b)


@each_pair
def test_refusals(name):
    layer, x = built(name, 2, checkpoint="sqrt"), draw(T, B, D)
    shown = ", ".join(rf"{part[0]}_0" for part in CELLS[name].first)
    for hx in (draw(2, B, N), (draw(2, B, N),), (draw(2, B, N), None), 3):
        with pytest.raises(TypeError, match=rf"hx must be a pair \({shown}\)"):
            layer(x, hx)
    twins = [torch.nn.LSTM(D, N, 2, dtype=torch.float64)] if name == "lstm" else []
    for model in (layer, *twins):
        with pytest.raises(RuntimeError, match=r"batched 3-D input, hx.* should also be 3-D but got \(2-D, 3-D\)"):
            model(x, (draw(B, N), draw(2, B, N)))
        with pytest.raises(RuntimeError, match=r"unbatched 2-D input, hx.* should also be 2-D but got \(3-D, 3-D\)"):
            model(x[:, 0], pair(2, B))
        with pytest.raises(RuntimeError, match=r"Expected hidden\[1\] size \(2, 4, 6\), got \[2, 3, 6\]"):
            model(x, (draw(2, B, N), draw(2, 3, N)))
    with pytest.raises(TypeError, match="start_state must be 2 torch.Tensors"):
        layer(x, starts=torch.ones(T, B, dtype=torch.bool), start_state=draw(2, B, N))
    h, c = pair(2, B)
    for hx in ((h.float(), c.float()), (h.half(), c), (h, c.float()), (h.long(), c), (h.half(), c.bfloat16())):
        for cached in (False, True):
            context = layer.cached() if cached else contextlib.nullcontext()
            with context, pytest.raises(TypeError, match="hx must have the precision of the weights"):
                layer.step(x[0], hx)
    with pytest.raises(RuntimeError, match="not at the same device"):
        layer(x, (h, c.to("meta")))


@each_pair
def test_trained_states_and_pairs_before_marks(name):
    """Both trained ones are what a call without states, and a mark, begin with; one part may be of each mark."""
    layer, x, marks = built(name, trainable_h0=True), draw(T, B, D), draw(T, B, seed=3) > 0.5
    first = [getattr(layer, f"{part}_l0") for part in CELLS[name].first]
    with torch.no_grad():
        for k, p in enumerate(first):
            p.copy_(draw(N, seed=5 + k))
    own, results = [p.expand(1, B, N) for p in first], []
    for hx, state in ((None, None), (own, own), (own, (first[0].expand(T, 1, B, N), own[1]))):
        y, (h, c) = layer(x, hx, starts=marks, start_state=state)
        results.append((y, h, c, *torch.autograd.grad(y.sin().sum() + (h * c).sum(), first)))
    for other in results[1:]:
        torch.testing.assert_close(other, results[0])


@each_pair
@pytest.mark.parametrize("keywords", [{}, {"bidirectional": True, "trainable_h0": True}], ids=["plain", "two ways"])
def test_pairs_in_graphs_and_transforms(name, keywords):
    """What is tested of a joined state for every layer, with pairs: compiled, exported, vmap, an empty batch."""
    layer, x = built(name, 2, **keywords), draw(T, B, D)
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
