"""Calls of a layer on one time step, which read its parameters as they are stored."""

import contextlib
from itertools import product

import pytest
import torch

import isometry.torch as it
from derivatives import same, score
from isometry.integrations.torch import register
from layers import B, D, N, close, draw, every_form, formed


@pytest.mark.parametrize("cached", [True, False])
@every_form
def test_orders_of_the_axes(form, cached):
    """Time first, batch first, without a batch; a step takes no axis of time."""
    layer, x = formed(form), draw(1, B, D)
    with torch.no_grad():
        expected, last = layer(torch.cat([x, x]))[0][:1], layer(x)[1]  # two steps: no call of one
        with layer.cached() if cached else contextlib.nullcontext():
            found = [layer(x), layer(x[:, 0])]
            layer.batch_first = True
            found.append(layer(x.transpose(0, 1)))
            with pytest.raises(ValueError, match="step"):
                layer.step(x)
    for (output, state), turned in zip(found, (expected, expected[:, 0], expected.transpose(0, 1)), strict=True):
        close(output, turned)
        close(state, last if output.dim() == 3 else last[:, 0])


@pytest.mark.parametrize("frozen", [None, "", "bias_l0", "hidden_bias_l0"])
def test_both_biases_of_a_gru(frozen):
    """None, or both with either frozen: values and derivatives of two orders are those of the first of two steps."""
    layer = formed("gru-after", bias=frozen is not None)
    x, h = draw(1, B, D).requires_grad_(), draw(1, B, N, seed=1).requires_grad_()
    for name, p in layer.named_parameters():
        p.requires_grad_(name != frozen)
    inputs, results = [x, h, *(p for p in layer.parameters() if p.requires_grad)], []
    for y in (layer(x, h)[0], layer(torch.cat([x, x]), h)[0][:1]):
        first = torch.autograd.grad(score(y), inputs, create_graph=True)
        results.append([y, *first, *torch.autograd.grad(sum(g.square().sum() for g in first), inputs)])
    same(*results)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_bias_that_is_not_finite_stays_in_its_place(recorded):
    """That of the product is not added to the candidate's own."""
    layer, x = formed("gru-after"), draw(1, B, D)
    with torch.no_grad():
        layer.hidden_bias_l0[2, 0] = torch.inf
    with torch.set_grad_enabled(recorded):
        found = layer(x)[0]
        close(found, layer(torch.cat([x, x]))[0][:1])
    assert found.isfinite().all()


LIE = {
    "in order": lambda t: t,
    "turned": lambda t: t.transpose(0, -1).contiguous().transpose(0, -1),
    "every second": lambda t: t.repeat_interleave(2, -1)[..., ::2],
    "negative": lambda t: torch._neg_view(-t),
    "expanded": lambda t: t[..., :1, :].expand_as(t),
    "inference": torch.inference_mode()(torch.clone),
}
MADE = {
    "layer": lambda kind: getattr(it.nn, kind)(D, N, 2, dtype=torch.float64),
    "cell": lambda kind: it.nn.from_torch(getattr(torch.nn, kind + "Cell")(D, N, dtype=torch.float64), cells=True),
    "torch": lambda kind: getattr(torch.nn, kind + "Cell")(D, N, dtype=torch.float64),
}


@pytest.mark.parametrize("lie", LIE)
@pytest.mark.parametrize(("made", "kind"), [*product(MADE, ["LSTM", "GRU"]), ("layer", "RNN"), ("torch", "RNN")])
def test_tensors_as_they_lie(made, kind, lie):
    """Values are those with gradients; they share no memory with anything; refusals too."""
    torch.manual_seed(5)
    layer, x, parts = MADE[made](kind), torch.randn(B, D, dtype=torch.float64), 1 + (kind == "LSTM")
    shape = (2, B, N) if made == "layer" else (B, N)
    call = layer.step if made == "layer" else layer
    given = [LIE[lie](x), *[LIE[lie](torch.randn(shape, dtype=torch.float64)) for _ in range(parts)]]

    def after(x, *state):
        found = call(x, state if parts > 1 else state[0])
        return found if parts > 1 else (found,)

    expected = after(*[t.clone(memory_format=torch.contiguous_format) for t in given])
    with register(always=True), torch.no_grad():
        found = after(*given)
        for ours, theirs in zip(found, expected, strict=True):
            close(ours, theirs)
        for i, wrong in product(range(1 + parts), (given[0][:2], given[0].float(), given[0][None, None])):
            with pytest.raises((ValueError, RuntimeError)):
                after(*given[:i], wrong, *given[i + 1 :])
    addresses = {t.untyped_storage().data_ptr() for t in (*found, *given, *layer.parameters())}
    assert len(addresses) == parts + len({t.untyped_storage().data_ptr() for t in (*given, *layer.parameters())})
