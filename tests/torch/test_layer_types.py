"""Types of weights, inputs and states: half precision is computed in float32 from the rounded parameters and rounded
once; autocast; types that a layer does not compute in."""

import copy
import warnings

import pytest
import torch

import isometry.torch as it
from derivatives import compiled
from layers import COMPLEX, KINDS, LAYERS, B, D, N, T, build, draw, each_kind, states

REAL = [name for name in KINDS if name not in COMPLEX]
EVERY = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


@pytest.mark.parametrize("name", [*LAYERS, "full-capacity-urnn"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64], ids=str)
def test_weights_of_another_type(name, dtype):
    """One message, of calls and of the matrix; complex layers have no half precision."""
    if not dtype.is_complex and name not in COMPLEX:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch: complex modules are new
        layer = build(name).to(dtype)
    words = "stores complex numbers as pairs" if dtype.is_complex else "float32 or float64, not .*half precision has no"
    for call in (lambda: layer(draw(T, B, D).to(dtype)), layer.recurrent_matrix):
        with pytest.raises(TypeError, match=words):
            call()


def test_advice_for_an_input_of_another_type():
    """What is advised works: a layer's own weights never become complex or integers."""
    x = draw(T, B, D)
    real, complex_ = build("scornn"), build("unitary-ornn")
    with pytest.raises(ValueError, match=r"real features: torch.cat\(\[input.real, input.imag\], -1\)$"):
        real(x.to(torch.complex128))
    with pytest.raises(ValueError, match=r"Convert input: input.to\(torch.float64\)$"):
        real(x.long())
    for layer, given in ((real, torch.float32), (complex_, torch.float32)):
        with pytest.raises(
            ValueError, match=r"input.to\(torch.float64\), or convert model: model.to\(torch.float32\)$"
        ):
            layer(x.to(given))
    words = r"input.to\(torch.complex128\), or convert model: model.to\(torch.float32\)$"
    with pytest.raises(ValueError, match=words):
        complex_(x.to(torch.complex64))
    complex_.to(torch.float32)(x.to(torch.complex64))


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
    if hasattr(layer, "recurrent_matrix"):
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


@each_kind
def test_autocast_computes_in_single_precision(name):
    """Half-precision inputs and states, as other modules return them under autocast, are widened first."""
    layer = build(name, 2, dtype=torch.float32)
    x, h0 = draw(T, B, D, dtype=torch.float32), states(layer, 2, B, dtype=torch.float32)
    half, half_h0 = x.bfloat16(), h0.bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        out, last = layer(half, half_h0)
    expected, expected_last = layer(half.float(), half_h0.float())
    assert torch.equal(out, expected)
    assert torch.equal(last, expected_last)
