"""Calls of a layer on one time step, which read its parameters as they are stored."""

import contextlib

import pytest
import torch

from derivatives import same, score
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
