"""`parametrizations.orthogonal` of weights with structure: orthogonal, of finite gradient, and back by assignment."""

import itertools

import numpy as np
import pytest
import torch

import isometry.torch as it
from orthogonal_weights import EVERY, MAPS, Holder, gap, original
from support import structure

# on both sides of thin weights that are computed as square ones, of small nearest matrices, wide ones, stacks
CASES = (
    ((1, 1), torch.float32),
    ((6, 6), torch.float64),
    ((6, 6), torch.bfloat16),
    ((2, 9, 9), torch.complex64),
    ((4, 9), torch.float32),
    ((70, 3), torch.float64),
    ((70, 3), torch.complex64),
    ((70, 20), torch.float32),
)


def drawn(name, shape, dtype):
    kind = np.dtype(str(dtype).removeprefix("torch.")) if dtype is not torch.bfloat16 else np.dtype(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        return torch.from_numpy(structure.draw(name, np.random.default_rng(0), shape, kind)).to(dtype)


@structure.named
@EVERY
def test_any_weight(name, structure):
    """As an initial weight, as the trained tensor without a base; W assigned to itself stays."""
    for shape, dtype in CASES:
        bound = 20 * max(shape[-2:] if dtype is not torch.bfloat16 else (1,)) * torch.finfo(dtype).eps
        for trivialization in (True, False):
            module = it.parametrizations.orthogonal(
                Holder(drawn(structure, shape, dtype)), "weight", name, use_trivialization=trivialization
            )
            w = module.weight
            assert gap(w) <= bound
            (w.real * torch.linspace(-1, 1, w.numel()).view(shape)).sum().backward()
            assert original(module).grad.isfinite().all()
            if trivialization or name == "householder":
                module.weight = before = w.detach().clone()
                assert (module.weight - before).abs().max() <= bound


@pytest.mark.parametrize(
    "name,scale",
    # the squares of reflection vectors are finite
    [(name, scale) for name in MAPS for scale in (1.0, 1e3, 1e9, 1e15, 1e30) if name != "householder" or scale < 1e18],
)
def test_trained_tensors_of_any_size(name, scale):
    """Also of weights so thin that no n x n matrix is formed, in both precisions."""
    for dtype, n in itertools.product((torch.float32, torch.float64, torch.complex128), (9, 200)):
        module = it.parametrizations.orthogonal(Holder(torch.randn(n, 3, dtype=dtype)), "weight", name)
        with torch.no_grad():
            original(module).copy_(scale * torch.randn(n, 3, dtype=dtype))
        module.weight.abs().square().cos().sum().backward()
        assert gap(module.weight) <= 200 * torch.finfo(dtype).eps
        assert original(module).grad.isfinite().all()
