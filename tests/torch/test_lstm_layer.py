"""`it.nn.LSTM`: torch.nn.LSTM with pairs of states, its steps, marks and trained initial states."""

import contextlib
import copy

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

import isometry.torch as it
import tolerance
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


def test_results_are_contiguous_pairs():
    """As torch's; a pair may be a list."""
    layer, x, state = lstm(2), draw(T, B, D), pair(2, B)
    out, last = layer(x, list(state))
    assert isinstance(last, tuple) and all(t.is_contiguous() for t in (out, *last))
    alike((out, *last), flat(twin_of(layer)(x, state)))


@pytest.mark.parametrize("checkpoint", ["none", "sqrt"])
@pytest.mark.parametrize("last_only", [False, True], ids=["all", "last"])
def test_gradients_are_those_of_torch_lstm(last_only, checkpoint):
    layer = lstm(2, bidirectional=True, last_only=last_only, checkpoint=checkpoint)
    grads = []
    for model in (layer, twin_of(layer)):
        sequences = [draw(k, D, seed=k).requires_grad_() for k in (1, 5, 3)]
        state = tuple(t.requires_grad_() for t in pair(4, 3))
        out, (h, c) = model(pack_sequence(sequences, enforce_sorted=False), state)
        if not last_only:
            out = out.data
        elif model is not layer:
            out = torch.cat((h[2], h[3]), -1)
        loss = (out * draw(*out.shape, seed=2)).sum() + (h * draw(*h.shape, seed=3)).sum()
        loss = loss + (c * draw(*c.shape, seed=4)).sum()
        grads.append(torch.autograd.grad(loss, [*sequences, *state, *model.parameters()]))
    for found, expected in zip(*grads, strict=True):
        tolerance.close(found, expected, tolerance.sequence_gradient("float64", N, T), "gradient")


def test_second_derivatives():
    layer, x = lstm(bidirectional=True), draw(3, 2, D)
    state = [t.requires_grad_() for t in pair(2, 2)]

    def call(x, h, c):
        out, (h, c) = layer(x, (h, c))
        return out, h, c

    assert torch.autograd.gradgradcheck(call, (x.requires_grad_(), *state))


def test_steps_are_a_call():
    """One input at a time, inside `cached` and outside, with two layers, with and without a batch."""
    for model, x in ((lstm(2), draw(T, B, D)), (lstm(2, trainable_h0=True), draw(T, D))):
        for p in model.parameters():
            p.data += 0.1
        expected, last = model(x)
        for cached in (False, True):
            with torch.no_grad(), model.cached() if cached else torch.no_grad():
                state = None
                for x_t, y_t in zip(x, expected, strict=True):
                    state = model.step(x_t, state)
                    close(state[0][-1], y_t)
            alike(state, last)


def test_a_mark_resets_both_states():
    """Every piece is a call of its own; both trained initial states have a gradient at a mark."""
    layer, x = lstm(trainable_h0=True), draw(T, B, D)
    marks = torch.zeros(T, B, dtype=torch.bool)
    marks[2], marks[4, 1] = True, True
    with torch.no_grad():
        layer.h0_l0.copy_(draw(N, seed=5))
        layer.c0_l0.copy_(draw(N, seed=6))
    out, (h, c) = layer(x, pair(1, B), starts=marks)
    first, _ = layer(x[:2], pair(1, B))
    second, (h_n, c_n) = layer(x[2:])
    close(out[:2], first)
    keep = [0, 2, 3]
    close(out[2:, keep], second[:, keep])
    alike((h[:, keep], c[:, keep]), (h_n[:, keep], c_n[:, keep]))
    last, ends = layer(x[4:, 1:2])
    close(out[4:, 1:2], last)
    alike((h[:, 1:2], c[:, 1:2]), ends)
    found = torch.autograd.grad(out.sum(), [layer.h0_l0, layer.c0_l0])
    expected = torch.autograd.grad(
        second[:, keep].sum() + layer(x[2:4, 1:2])[0].sum() + last.sum(), [layer.h0_l0, layer.c0_l0]
    )
    alike(found, expected)


def test_initial_values():
    """Those of torch; initial states are zero."""
    layer = lstm(2, bidirectional=True, trainable_h0=True)
    assert not any(p.any() for name, p in layer.named_parameters() if name[:2] in ("h0", "c0"))
    torch.manual_seed(0)
    theirs = torch.nn.LSTM(D, N, 2, bidirectional=True, dtype=torch.float64)
    ours = lstm(2, bidirectional=True).state_dict()
    assert list(ours) == list(theirs.state_dict())
    assert all(torch.equal(ours[key], value) for key, value in theirs.state_dict().items())


def test_half_precision_and_copies():
    layer, x = it.nn.LSTM(D, N), draw(T, B, D, dtype=torch.float32)
    expected, (h, _) = layer(x)
    low = copy.deepcopy(layer).bfloat16()
    out, (h_low, c_low) = low(x.bfloat16())
    assert out.dtype is h_low.dtype is c_low.dtype is torch.bfloat16
    torch.testing.assert_close(out.float(), expected, rtol=0.05, atol=0.02)
    torch.testing.assert_close(h_low.float(), h, rtol=0.05, atol=0.02)


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
