"""The activation of a layer that is told none."""

from functools import partial

import pytest
import torch

import isometry.torch as it
from layers import D


@pytest.mark.parametrize(
    ("make", "units", "expected"),
    [
        (it.nn.ScoRNN, 6, "oplu"),
        (it.nn.ScoRNN, 5, "leaky_relu"),
        (partial(it.nn.ScoRNN, heads=2), 6, "leaky_relu"),
        (partial(it.nn.ExpRNN, heads=2), 8, "oplu"),
        (partial(it.nn.ExpRNN, complex=True), 6, "modrelu"),
        (it.nn.ScuRNN, 5, "leaky_relu"),
        (it.nn.GORU, 5, "modrelu"),
    ],
)
def test_the_activation_that_is_not_given(make, units, expected):
    """Pairs of units lie in one head."""
    layer = make(D, units)
    assert layer.nonlinearity == expected
    same = make(D, units, nonlinearity=expected)
    same.load_state_dict(layer.state_dict())
    x = torch.randn(4, 2, D)
    assert torch.equal(same(x)[0], layer(x)[0])
