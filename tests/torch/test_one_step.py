"""Calls of a layer on one time step, which read its parameters as they are stored."""

import pytest
import torch

import isometry.torch as it
import tolerance
from isometry import _core
from isometry.torch.formulas.gru import apart
from layers import draw

B, D, N = 3, 4, 8
INFINITE = float("inf")


def build(bias=True, **keywords):
    torch.manual_seed(0)
    return it.nn.GRU(D, N, bias=bias, reset="after", dtype=torch.float64, **keywords)


def by_function(layer, x, h):
    """The same from the biases added in torch operations."""
    b, own = (layer.bias_l0, layer.hidden_bias_l0) if layer.bias else (None, None)
    b, own = apart(b, own)
    how = {"h0": None if h is None else h[0], "reset": "after", "hidden_bias": own}
    return it.gru(x, layer.weight_hh_l0, layer.weight_ih_l0, b, **how)


def gradients(value, inputs):
    return torch.autograd.grad(value.square().sum(), inputs, create_graph=True)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("with_state", [True, False])
@pytest.mark.parametrize("frozen", [(), ("bias_l0",), ("hidden_bias_l0",)], ids=str)
def test_gradients_of_both_biases(bias, with_state, frozen):
    """Of the first and second order, with either bias frozen."""
    layer, x = build(bias), draw(1, B, D).requires_grad_()
    h = draw(1, B, N).requires_grad_() if with_state else None
    for name in frozen if bias else ():
        getattr(layer, name).requires_grad_(False)
    inputs = [x, *([h] if with_state else []), *[p for p in layer.parameters() if p.requires_grad]]
    found, expected = layer(x, h)[0], by_function(layer, x, h)
    close = tolerance.sequence_gradient("float64", N, 1)
    tolerance.close(found.detach(), expected.detach(), close, "output")
    for a, b in zip(gradients(found, inputs), gradients(expected, inputs), strict=True):
        tolerance.close(a.detach(), b.detach(), close, "gradient")
    twice = [
        torch.autograd.grad(sum(g.square().sum() for g in gradients(y, inputs)), inputs, allow_unused=True)
        for y in (layer(x, h)[0], by_function(layer, x, h))
    ]
    for a, b in zip(*twice, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            tolerance.close(a, b, close, "gradient of the gradient")


@pytest.mark.parametrize("recorded", [True, False])
def test_a_bias_that_is_not_finite_stays_in_its_place(recorded):
    """That of the product is not added to the candidate's own."""
    layer, x = build(), draw(1, B, D)
    with torch.no_grad():
        layer.hidden_bias_l0[2, 0] = INFINITE
    with torch.set_grad_enabled(recorded):
        found, expected = layer(x)[0].detach(), by_function(layer, x, None).detach()
    assert found.isfinite().all()
    tolerance.close(found, expected, tolerance.sequence("float64", N, 1))


def test_transforms_of_one_step():
    layer, x = build(), draw(1, B, D)
    given = {name: torch.stack([p, 2 * p]).detach() for name, p in layer.named_parameters()}
    call = lambda own: torch.func.functional_call(layer, own, (x,))[0]
    found = torch.func.vmap(call)(given)
    for i, one in enumerate(found):
        own = {name: p[i] for name, p in given.items()}
        tolerance.close(one, call(own).detach(), tolerance.sequence("float64", N, 1))


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN", "DeltaProduct"])
@pytest.mark.parametrize("cached", [True, False])
def test_orders_of_the_axes(kind, cached):
    """Time first, batch first, without a batch; a step takes no axis of time."""
    layer = getattr(it.nn, kind)(D, N, dtype=torch.float64)
    swapped = getattr(it.nn, kind)(D, N, batch_first=True, dtype=torch.float64)
    swapped.load_state_dict(layer.state_dict())
    x, first = draw(1, B, D), lambda last: last[0] if isinstance(last, tuple) else last
    with torch.no_grad():
        both = layer(torch.cat([x, x]))[0][:1]  # two steps: no call of one
        close = tolerance.sequence("float64", N, 1)
        inside = layer.cached() if cached else torch.no_grad()
        also = swapped.cached() if cached else torch.no_grad()
        with inside, also:
            tolerance.close(layer(x)[0], both, close)
            tolerance.close(swapped(x.transpose(0, 1))[0], both.transpose(0, 1), close)
            tolerance.close(layer(x[:, 0])[0], both[:, 0], close)
            assert first(layer(x)[1]).shape == first(layer(torch.cat([x, x]))[1]).shape
            with pytest.raises(ValueError, match="step"):
                layer.step(x)


HEADED = ["ScoRNN", "ScuRNN", "ORNN", "GORU", "GRU", "LSTM", "RNN"]


@pytest.mark.parametrize("name", HEADED)
def test_steps_of_heads_form_no_whole_matrix(name, monkeypatch):
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
