"""One step of own, converted and registered layers, from tensors as they lie."""

from itertools import product

import pytest
import torch

import isometry.torch as it
from isometry.integrations.torch import register
from layers import B, D, N, close

LIE = {
    "in order": lambda t: t,
    "turned": lambda t: t.transpose(0, -1).contiguous().transpose(0, -1),
    "every second": lambda t: t.repeat_interleave(2, -1)[..., ::2],
    "negative": lambda t: torch._neg_view(-t),
    "expanded": lambda t: t[..., :1, :].expand_as(t),
    "inference": torch.inference_mode()(torch.clone),
}
MADE = {
    "layer": lambda kind: getattr(it.nn, kind)(D, N, 2, dtype=torch.float64),
    "cell": lambda kind: it.nn.from_torch(getattr(torch.nn, kind + "Cell")(D, N, dtype=torch.float64), cells=True),
    "torch": lambda kind: getattr(torch.nn, kind + "Cell")(D, N, dtype=torch.float64),
}


@pytest.mark.parametrize("lie", LIE)
@pytest.mark.parametrize(("made", "kind"), [*product(MADE, ["LSTM", "GRU"]), ("layer", "RNN"), ("torch", "RNN")])
def test_tensors_as_they_lie(made, kind, lie):
    """Values are those with gradients; they share no memory with anything; refusals too."""
    torch.manual_seed(5)
    layer, x, parts = MADE[made](kind), torch.randn(B, D, dtype=torch.float64), 1 + (kind == "LSTM")
    shape = (2, B, N) if made == "layer" else (B, N)
    call = layer.step if made == "layer" else layer
    given = [LIE[lie](x), *[LIE[lie](torch.randn(shape, dtype=torch.float64)) for _ in range(parts)]]

    def after(x, *state):
        found = call(x, state if parts > 1 else state[0])
        return found if parts > 1 else (found,)

    expected = after(*[t.clone(memory_format=torch.contiguous_format) for t in given])
    with register(always=True), torch.no_grad():
        found = after(*given)
        for ours, theirs in zip(found, expected, strict=True):
            close(ours, theirs)
        for i, wrong in product(range(1 + parts), (given[0][:2], given[0].float(), given[0][None, None])):
            with pytest.raises((ValueError, RuntimeError)):
                after(*given[:i], wrong, *given[i + 1 :])
    addresses = {t.untyped_storage().data_ptr() for t in (*found, *given, *layer.parameters())}
    assert len(addresses) == parts + len({t.untyped_storage().data_ptr() for t in (*given, *layer.parameters())})
