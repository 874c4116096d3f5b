"""RealState and output_size: one readout for layers of both fields."""

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import isometry.torch as it
from layers import COMPLEX, KINDS, B, D, N, T, build, draw


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("keywords", [{}, {"bidirectional": True, "num_layers": 2}, {"last_only": True}], ids=str)
def test_every_layer_before_a_readout(name, keywords):
    layer = build(name, **keywords)
    states = layer(draw(T, B, D))[0]
    features = it.nn.RealState()(states)
    assert not features.is_complex() and features.shape == (*states.shape[:-1], layer.output_size)
    if states.is_complex():
        assert torch.equal(features, it.real_state(states))
    else:
        assert features is states
    torch.nn.Linear(layer.output_size, 2).double()(features)
    packed, _ = layer(pack_padded_sequence(draw(T, B, D), [T, 2, 1, 3], enforce_sorted=False))
    if not layer.last_only:
        features = it.nn.RealState()(packed)
        assert type(features) is PackedSequence and features[1:] == packed[1:]
        assert torch.equal(features.data, it.nn.RealState()(packed.data))


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", [name for name in KINDS if name not in COMPLEX])
def test_half_precision_passes(name, dtype, autocast):
    layer, x = build(name, dtype=dtype), draw(T, B, D, dtype=dtype)
    packed, _ = layer(pack_padded_sequence(x, [T, 2, 1, 3], enforce_sorted=False))
    states = layer(x)[0]
    with torch.autocast("cpu", dtype, enabled=autocast):
        assert it.nn.RealState()(states) is states and it.nn.RealState()(packed).data is packed.data


def test_gradients_and_what_is_refused():
    module = it.nn.RealState()
    z = torch.randn(3, N, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(module, (z,))
    assert list(module.state_dict()) == []
    assert torch.equal(torch.compile(module, fullgraph=True)(z), module(z))
    with pytest.raises(TypeError, match="^input must be"):
        module([1.0])
