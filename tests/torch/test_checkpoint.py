"""Checkpoints change no state and no gradient; the last state alone is that of all states, with its gradients."""

import pytest
import torch

import isometry.torch as it
from derivatives import draw, every_order, gradients, same
from layers import KINDS, MATRIX, OF_CELLS, B, D, N, build

LONG = 600  # five segments with B = 4
UNDONE = ("ornn", "unitary-ornn", "scornn", "scurnn", "eurnn", "exprnn", "exprnn-complex", "urnn")


def trained(layer, x, lengths=None):
    """Output and h_n of a layer, and the gradients of a function of both that weighs every number differently."""
    if lengths is not None:
        x = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    output, last = layer(x)
    output = output.data if lengths is not None and not torch.is_tensor(output) else output
    parts = [torch.view_as_real(t) if t.is_complex() else t for t in (output, last)]
    loss = sum((t * torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype).view_as(t)).sum() for t in parts)
    return [output, last, *torch.autograd.grad(loss, list(layer.parameters()))]


def pair(name, *, nonlinearity=None, **keywords):
    """A layer with the checkpoint and one without, of the same parameters, and a long input."""
    lean = {k: keywords.pop(k) for k in ("checkpoint", "last_only") if k in keywords}
    keywords |= {} if nonlinearity is None else {"nonlinearity": nonlinearity}
    layers = [build(name, **keywords, **more) for more in ({}, lean)]
    return *layers, torch.randn(LONG, B, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


# ---------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("lengths", [None, [LONG, 3, 599, 300]], ids=["full", "lengths"])
@pytest.mark.parametrize("name", [name for name in KINDS if name not in MATRIX])
def test_segments_computed_again_change_no_bit(name, lengths):
    plain, lean, x = pair(name, checkpoint="sqrt", bidirectional=True)
    for a, b in zip(trained(lean, x, lengths), trained(plain, x, lengths), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("nonlinearity", ["identity", "oplu", "oplu_halves"])
@pytest.mark.parametrize("name", UNDONE)
def test_steps_undone(name, nonlinearity):
    lengths = [LONG, 3, 599, 300]
    plain, lean, x = pair(name, checkpoint="reversible", bidirectional=True, nonlinearity=nonlinearity)
    (output, last, *found), (states, h_n, *expected) = trained(lean, x, lengths), trained(plain, x, lengths)
    assert torch.equal(output, states)
    assert torch.equal(last, h_n)
    for a, b in zip(found, expected, strict=True):
        assert (a - b).abs().max() <= 1e-11 * b.abs().max()


@pytest.mark.parametrize("name", UNDONE)
def test_steps_undone_with_a_w_that_is_held(name):
    plain, lean, x = pair(name, checkpoint="reversible", nonlinearity="oplu")
    expected = trained(plain, x)
    with lean.cached():
        found = trained(lean, x)
    for a, b in zip(found, expected, strict=True):
        assert (a - b).abs().max() <= 1e-11 * b.abs().max()


@pytest.mark.parametrize("checkpoint", ["none", "sqrt", "reversible"])
def test_the_last_state_may_be_written_to(checkpoint):
    """Without one, backward sees it: nothing that is saved changes with the result."""
    plain, lean, x = pair("ornn", checkpoint=checkpoint, last_only=True, nonlinearity="oplu")
    found = torch.autograd.grad(lean(x)[0].mul_(2.0).sum(), list(lean.parameters()))
    for a, b in zip(found, torch.autograd.grad(2.0 * plain(x)[0][-1].sum(), list(plain.parameters())), strict=True):
        assert (a - b).abs().max() <= 1e-11 * b.abs().max()


@pytest.mark.parametrize("activation", ["tanh", "modrelu", "oplu"])
def test_any_activation_of_the_input_is_undone(activation, seed):
    """h_t = W h_{t-1} + phi(V x_t) has the inverse W^H (h_t - phi(V x_t)) for every phi."""
    own = {"activation_bias": draw(seed, N)} if activation == "modrelu" else {}
    at = [draw(seed, N, 2), draw(seed, LONG, B, D), draw(seed, N, D), draw(seed, B, N)]

    def states(checkpoint):
        given = {"activation": activation, "activation_on": "input", "checkpoint": checkpoint, **own}
        return lambda u, x, v, h0: it.recurrence(it.Householder(u), x, v, h0=h0, **given)

    for a, b in zip(gradients(states("reversible"), at), gradients(states("none"), at), strict=True):
        assert (a - b).abs().max() <= 1e-11 * b.abs().max()


def test_a_long_sequence_in_single_precision_drifts_little(seed):
    """Undone steps start anew at the borders, so that gradients of 20,000 steps keep three digits."""
    upper, x, v = draw(seed, N * (N - 1) // 2), draw(seed, 20000, 2, 1), draw(seed, N, 1)
    given = {"activation": "oplu", "output": "last"}

    def run(upper, x, v, **more):
        return it.recurrence(it.Cayley(upper), x, v, **given, **more)

    at = [t.float() for t in (upper, x, v)]
    found = gradients(lambda *at: run(*at, checkpoint="reversible"), at)
    for a, b in zip(found, gradients(run, at), strict=True):
        assert (a - b).norm() <= 1e-3 * b.norm()


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_no_bit(threads, seed):
    """A single sequence, whose columns are shared, and more rows than halves."""
    for batch, n in ((1, 96), (17, 8)):
        at = [draw(seed, n, n) / n, draw(seed, 1100, batch, 1), draw(seed, n, 1)]
        found = []
        for mode, count in (("none", 1), ("sqrt", threads)):
            run = lambda w, x, v: it.recurrence(it.Dense(w), x, v, checkpoint=mode)
            torch.set_num_threads(count)
            found.append(gradients(run, at))
        for a, b in zip(*found, strict=True):
            assert torch.equal(a, b)


# ---------------------------------------------------------------- the last state


@pytest.mark.parametrize("mode", ["none", "sqrt"])
@pytest.mark.parametrize("name", ["scornn", *OF_CELLS])
def test_the_last_states_of_a_layer(name, mode):
    """In every form of input, of several layers in two directions: only the last layer's output is reduced."""
    keywords = {"bidirectional": True, "num_layers": 2}
    for first in (False, True):
        plain, lean, x = pair(name, checkpoint=mode, last_only=True, batch_first=first, **keywords)
        x = x[:40].transpose(0, 1) if first else x[:40]
        (states, h_n), (output, last) = plain(x), lean(x)
        ends = (states[:, -1], states[:, 0]) if first else (states[-1], states[0])
        assert torch.equal(output, torch.cat((ends[0][:, :N], ends[1][:, N:]), 1))
        assert output.shape == (B, 2 * N)
        assert torch.equal(last, h_n)
        single, h_single = lean(x[0] if first else x[:, 0])
        assert (single - output[0]).abs().max() <= 1e-12
        assert h_single.shape == (4, *lean._state)
        assert lean(x[:0] if first else x[:, :0])[0].shape == (0, 2 * N)


def test_the_last_states_of_a_packed_sequence():
    plain, lean, x = pair("ornn", checkpoint="sqrt", last_only=True, bidirectional=True)
    lengths = torch.tensor([40, 7, 60, 1])
    packed = torch.nn.utils.rnn.pack_padded_sequence(x[:60], lengths, enforce_sorted=False)
    output, last = lean(packed)
    assert torch.equal(last, plain(packed)[1])
    assert torch.equal(output, torch.cat((last[0], last[1]), 1))


# ---------------------------------------------------------------- modes of torch


@pytest.mark.parametrize("checkpoint", ["none", "sqrt", "reversible"])
def test_derivatives_of_the_last_state(checkpoint, seed):
    """First and second, by the kernels and by the formula, compiled and with torch.func."""
    at = [draw(seed, 4, 2), draw(seed, 3, 2, D), draw(seed, 4, D)]
    given = {"activation": "oplu", "lengths": [3, 2], "checkpoint": checkpoint, "output": "last"}
    f = lambda u, x, v: it.recurrence(it.Householder(u), x, v, **given)
    every_order(f, at)
    ours = torch.func.grad(lambda u: f(u, *at[1:]).square().sum())(at[0])
    u = at[0].requires_grad_()
    same(ours, torch.autograd.grad(f(u, *at[1:]).square().sum(), u)[0])


# ---------------------------------------------------------------- refusals


def test_refusals(seed):
    n, (x, v) = 4, (draw(seed, 3, 2, D), draw(seed, 4, D))
    turn, soft = it.Householder(draw(seed, n, 2)), it.Householder(draw(seed, n, 2), sign=0.5)
    undone = {"activation": "identity", "checkpoint": "reversible"}
    for op in (turn, turn.H, turn @ turn.H @ it.Cayley(draw(seed, 6)), it.Householder(draw(seed, n, 2), sign=-1.0)):
        it.recurrence(op, x, v, **undone)
    for op in (it.Dense(torch.eye(n, dtype=torch.float64)), soft, turn @ soft, soft.H):
        with pytest.raises(ValueError, match="reversible.*orthogonal"):
            it.recurrence(op, x, v, **undone)
    with pytest.raises(ValueError, match="reversible.*tanh"):
        it.recurrence(turn, x, v, checkpoint="reversible")
    for name in OF_CELLS:
        with pytest.raises(ValueError, match="reversible.*gates"):
            build(name, checkpoint="reversible")
    for name in ("soft-ornn", "kru"):
        with pytest.raises(ValueError, match="reversible.*orthogonal"):
            build(name, checkpoint="reversible", nonlinearity="identity")
    with pytest.raises(ValueError, match="reversible.*orthogonal"):
        it.nn.ORNN(3, 4, sign="soft", checkpoint="reversible", nonlinearity="oplu")
    with pytest.raises(ValueError, match="reversible.*nonlinearity"):
        it.nn.ScoRNN(3, 5, checkpoint="reversible")
    with pytest.raises(ValueError, match="lam=1"):
        it.nn.RUM(3, 4, lam=1, checkpoint="sqrt")
    with pytest.raises(TypeError, match="last_only"):
        it.nn.GRU(3, 4, last_only=1)


def test_a_layer_shows_what_it_keeps():
    shown = repr(it.nn.ScoRNN(3, 4, checkpoint="sqrt", last_only=True))
    assert "checkpoint='sqrt'" in shown
    assert "last_only=True" in shown
