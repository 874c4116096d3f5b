"""Adapters whose layer a quantiser has replaced: an error that says so."""

import pytest
import torch

import isometry.torch as it


class Stored(torch.nn.Linear):
    """As some quantisers keep a layer: its class and weight alone are other ones."""

    def __init__(self, linear, dtype):
        super().__init__(linear.in_features, linear.out_features)
        self.weight = torch.nn.Parameter(linear.weight.detach().to(dtype), requires_grad=False)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight.to(x.dtype), self.bias)


QUANTISERS = {
    "dynamic": lambda m: torch.ao.quantization.quantize_dynamic(m, {torch.nn.Linear}, inplace=True),
    "int8": lambda m: setattr(m[0], "linear", Stored(m[0].linear, torch.int8)),
    "float8": lambda m: setattr(m[0], "linear", Stored(m[0].linear, torch.float8_e4m3fn)),
}


@pytest.mark.parametrize("quantiser", QUANTISERS)
@pytest.mark.filterwarnings("ignore:torch.ao:DeprecationWarning")
@pytest.mark.parametrize("kind", [it.adapters.OFT, it.adapters.HRA])
def test_a_layer_that_was_quantised(kind, quantiser):
    """The adapter still computes; what needs the weight says why it is not there."""
    model, x = torch.nn.Sequential(kind(torch.nn.Linear(12, 5), 4)), torch.randn(3, 12)
    QUANTISERS[quantiser](model)
    assert model(x).shape == (3, 5)
    name = r"torch\.ao\S*Linear" if quantiser == "dynamic" else "Stored"
    readers = {"weight": lambda: model[0].weight, "bias": lambda: model[0].bias, "merge": model[0].merge}
    readers["0: merge"] = lambda: it.adapters.merge(model)
    for reader, read in readers.items():
        with pytest.raises(TypeError, match=rf"^{reader} needs .* quantised .* {name}\. Merge"):
            read()
    assert it.adapters.detach(model)[0](x).shape == (3, 5)
