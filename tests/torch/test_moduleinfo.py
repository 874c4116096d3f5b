"""PyTorch's samples of its recurrent modules, of the layers that load their weights, in their place."""

import re
import warnings

import pytest
import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map

from layers import AS_TORCH, each_of_torch

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module")
def infos():
    """torch's descriptions of its modules, by class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_modules import module_db
    return {info.module_cls: info for info in module_db}


def samples(infos, name, dtype, **more):
    """Keywords of the constructor, arguments of a call, for every sample; no projections, which no layer has."""
    torch.manual_seed(0)
    info = infos[AS_TORCH[name][0]]
    drawn = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=True, **more)
    kept = [(dict(s.constructor_input.kwargs), s.forward_input.args) for s in drawn]
    kept = [(keywords, args) for keywords, args in kept if not keywords.pop("proj_size", 0)]
    assert len(kept) >= 8
    return kept


def pair(name, keywords, dtype):
    theirs, ours = (make(**keywords, dtype=dtype) for make in AS_TORCH[name])
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


@each_of_torch
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_samples(infos, name, dtype):
    """Values and gradients, of packed sequences too, in training and in evaluation, of inputs in any layout."""
    more = {} if name == "lstm" else {"with_packed_sequence": True}
    for keywords, args in samples(infos, name, dtype, **more):
        layers = pair(name, keywords, dtype)
        for training in (True, False):
            found = []
            for layer in layers:
                layer.train(training)
                results = layer(*args)
                inputs = [t for t in tree_leaves(args) if isinstance(t, torch.Tensor) and t.requires_grad]
                floats = [t for t in tree_leaves(results) if isinstance(t, torch.Tensor) and t.is_floating_point()]
                loss = sum(t.square().sum() for t in floats)
                found.append((results, torch.autograd.grad(loss, inputs)))
            assert_close(*found)
        spread = tree_map(lambda t: strided(t) if isinstance(t, torch.Tensor) else t, args)
        assert_close(*[layer(*spread) for layer in layers])


def strided(t):
    """The same values in every second place of memory, where a tensor has floats."""
    return torch.stack([t, t], -1)[..., 0] if t.is_floating_point() else t


@each_of_torch
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_error_inputs(infos, name, dtype):
    """torch's classes and messages; where torch calls every layer an RNN, the layer's own name stands."""
    info = infos[AS_TORCH[name][0]]
    errors = info.module_error_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=True)
    assert len(errors) >= 8
    for error in errors:
        made, call = error.module_error_input.constructor_input, error.module_error_input.forward_input
        with pytest.raises(error.error_type) as raised:
            layer = AS_TORCH[name][1](*made.args, **made.kwargs)
            layer(*call.args, **call.kwargs)
        assert re.search(error.error_regex.replace("RNN input", "input"), str(raised.value))
