"""Layers of torch, drawn for a test."""

import pytest
import torch

from layers import D, N

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
