"""`it.nn.GRU` with reset "after" is torch.nn.GRU."""

import pytest
import torch

import isometry.torch as it
from layers import D, N, build, is_its_twin


def gru(*args, **keywords):
    return build("gru", *args, **keywords)


def twin_of(layer, **keywords):
    """torch.nn.GRU with the same matrices and biases, whose order is r, z, h."""
    twin = torch.nn.GRU(D, N, layer.num_layers, bidirectional=layer.bidirectional, dtype=torch.float64, **keywords)
    with torch.no_grad():
        for key, p in twin.named_parameters():
            kind, end = key.split("_l")
            own = getattr(layer, {"bias_ih": "bias", "bias_hh": "hidden_bias"}.get(kind, kind) + "_l" + end)
            p.copy_(own[[1, 0, 2]].flatten(0, 1))
    return twin


@pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "two-way"])
@pytest.mark.parametrize("batch_first", [False, True], ids=["time-first", "batch-first"])
def test_reset_after_is_torch_gru(bidirectional, batch_first):
    layer = gru(2, reset="after", bidirectional=bidirectional, batch_first=batch_first)
    is_its_twin(layer, twin_of(layer, batch_first=batch_first))


def test_representation_and_refusals():
    assert repr(it.nn.GRU(D, N, 2, reset="after")) == "GRU(3, 6, num_layers=2, reset='after')"
    with pytest.raises(TypeError, match="nonlinearity"):
        it.nn.GRU(D, N, nonlinearity="relu")
