"""`it.gru`: the refusals of its own settings."""

import pytest
import torch

import isometry.torch as it


def test_refusals():
    x, w, u, b = (torch.zeros(s) for s in ((3, 2, 2), (3, 4, 4), (3, 4, 2), (3, 4)))
    with pytest.raises(ValueError, match="reset must be 'before' or 'after'"):
        it.gru(x, w, u, b, reset="never")
    with pytest.raises(ValueError, match="hidden_bias must not be given"):
        it.gru(x, w, u, b, hidden_bias=b[0])
