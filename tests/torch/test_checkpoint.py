"""Checkpoints change no state and no gradient; the last state alone is that of all states, with its gradients."""

import contextlib

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

import isometry.torch as it
from derivatives import draw, gradients
from layers import OF_CELLS, B, D, N, build

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


@pytest.mark.parametrize("nonlinearity", ["identity", "oplu", "oplu_halves"])
@pytest.mark.parametrize("name", UNDONE)
def test_steps_undone(name, nonlinearity):
    """With a W that is held too."""
    lengths = [LONG, 3, 599, 300]
    plain, lean, x = pair(name, checkpoint="reversible", bidirectional=True, nonlinearity=nonlinearity)
    output, last, *expected = trained(plain, x, lengths)
    for around in (contextlib.nullcontext(), lean.cached()):
        with around:
            states, h_n, *found = trained(lean, x, lengths)
        assert torch.equal(output, states)
        assert torch.equal(last, h_n)
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
        packed = pack_sequence([torch.randn(k, D, dtype=torch.float64) for k in (40, 7, 60, 1)], enforce_sorted=False)
        output, last = lean(packed)
        assert torch.equal(last, plain(packed)[1])
        assert torch.equal(output, torch.cat((last[2, :, :N], last[3, :, :N]), 1))


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
