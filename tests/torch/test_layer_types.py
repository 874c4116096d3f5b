"""Layers whose weights or inputs have a type that they do not compute in."""

import warnings

import pytest
import torch

from layers import COMPLEX, LAYERS, B, D, T, build, draw


@pytest.mark.parametrize("name", [*LAYERS, "full-capacity-urnn"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64], ids=str)
def test_weights_of_another_type(name, dtype):
    """One message, of calls and of the matrix; complex layers have no half precision."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch: complex modules are new
        layer = build(name).to(dtype)
    if not dtype.is_complex and name not in COMPLEX:
        assert layer(draw(T, B, D).to(dtype))[0].dtype == layer.recurrent_matrix().dtype == dtype
        return
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
