"""Layers in float16 and bfloat16: computed in float32 from the rounded parameters, rounded once."""

import copy

import pytest
import torch

import isometry.torch as it
from derivatives import compiled
from layers import COMPLEX, KINDS, B, D, N, T, build, draw

REAL = [name for name in KINDS if name not in COMPLEX]
EVERY = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


@EVERY
@pytest.mark.parametrize("name", REAL)
def test_half_precision_is_single_precision_rounded_once(name, dtype):
    """Results and gradients of two layers in two directions are those of the widened layer, rounded; so is W."""
    layer = build(name, 2, bidirectional=True, trainable_h0=True, dtype=torch.float32).to(dtype)
    wide, x = copy.deepcopy(layer).float(), draw(T, B, D).to(dtype)
    found, expected = layer(x), wide(x.float())
    for result, full in zip(found, expected, strict=True):
        assert torch.equal(result, full.to(dtype))
    ct = torch.randn_like(expected[0]).to(dtype)
    found[0].backward(ct)
    expected[0].backward(ct.float())
    for (key, p), q in zip(layer.named_parameters(), wide.parameters(), strict=True):
        assert p.grad.dtype == dtype, key
        assert torch.equal(p.grad, q.grad.to(dtype)), key
    if name in ("ornn", "goru"):
        assert torch.equal(layer.recurrent_matrix(1, True), wide.recurrent_matrix(1, True).to(dtype))


@EVERY
def test_half_precision_from_the_constructor(dtype):
    layer, x = it.nn.ORNN(D, N, dtype=dtype), draw(T, B, D).to(dtype)
    h0 = draw(1, B, N).to(dtype)
    assert layer(x, h0)[1].dtype == dtype
    other = torch.float16 if dtype is torch.bfloat16 else torch.bfloat16
    with pytest.raises(TypeError, match="hx must have the precision of the weights"):
        layer(x, h0.to(other))
    with pytest.raises(ValueError, match="does not match weight dtype"):
        layer(x.float())


def test_autocast_over_half_precision_weights():
    """Under autocast the result is in single precision."""
    layer, x = build("scornn", dtype=torch.float32).to(torch.bfloat16), draw(T, B, D).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(x)[0]
    assert torch.equal(out, copy.deepcopy(layer).float()(x.float())[0])


def test_half_precision_compiles():
    torch.compiler.reset()
    layer, x = build("goru", dtype=torch.float32).to(torch.bfloat16), draw(T, B, D).bfloat16()
    torch.testing.assert_close(compiled(layer)(x)[0], layer(x)[0])
