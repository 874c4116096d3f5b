"""Layers of torch, drawn for a test, and layers of this package beside them."""

import pytest
import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

from layers import D, N, draw

EXACT = {"rtol": 1e-12, "atol": 1e-12}

LAYERS = {
    "tanh": (torch.nn.RNN, {}),
    "relu": (torch.nn.RNN, {"nonlinearity": "relu"}),
    "gru": (torch.nn.GRU, {}),
    "lstm": (torch.nn.LSTM, {}),
}
#: Marks a test that takes each kind.
each = pytest.mark.parametrize("kind", LAYERS)


def theirs(kind, *sizes, **keywords):
    make, own = LAYERS[kind]
    torch.manual_seed(3)
    return make(D, N, *sizes, **own, **keywords, dtype=torch.float64)


def gradients(layer, result, *inputs):
    """Of a weighted sum of the results, with respect to the inputs; then the sum of squares of those of the weights."""
    loss = sum((t * draw(*t.shape, seed=k)).sum() for k, t in enumerate(tree_leaves(result)))
    found = torch.autograd.grad(loss, [*inputs, *layer.parameters()])
    return [*found[: len(inputs)], sum(g.square().sum() for g in found[len(inputs) :])]


def agree(pair, *args):
    """Output, last states and gradients of both layers on the same arguments."""
    results = [layer(*args) for layer in pair]
    assert_close(*results, **EXACT)
    inputs = [t for t in tree_leaves(args) if isinstance(t, torch.Tensor) and t.requires_grad]
    assert_close(*[gradients(layer, result, *inputs) for layer, result in zip(pair, results, strict=True)], **EXACT)
