"""`it.nn.RUM`: without biases, refusals."""

import pytest
import torch

import isometry.torch as it
from layers import B, D, N, T, build, draw


@pytest.mark.parametrize("nonlinearity", ["modrelu", "relu"])
def test_without_bias_none_is_trained(nonlinearity):
    """As in the other layers the modReLU then has the bias 0."""
    layer = build("rum", bias=False, nonlinearity=nonlinearity, eta=1.0)
    assert {name.partition("_l")[0] for name, _ in layer.named_parameters()} == {
        "weight_hh",
        "weight_ih",
        "embed_weight",
    }
    biased = build("rum", nonlinearity=nonlinearity, eta=1.0)
    with torch.no_grad():
        for name, p in biased.named_parameters():
            p.copy_(getattr(layer, name)) if "bias" not in name else p.zero_()
    x = draw(T, B, D)
    assert torch.equal(layer(x)[0], biased(x)[0]) and layer(x)[0].isfinite().all()


def test_representation_and_refusals():
    assert repr(it.nn.RUM(D, N, 2, eta=2.0)) == "RUM(3, 6, num_layers=2, lam=0, eta=2.0, nonlinearity='relu')"
    with pytest.raises(ValueError, match="lam must be 0"):
        it.nn.RUM(D, N, lam=2)
    with pytest.raises(ValueError, match="eta must be a positive number"):
        it.nn.RUM(D, N, eta=-1.0)
    with pytest.raises(TypeError, match="reflections"):
        it.nn.RUM(D, N, reflections=2)
