"""The network of a run on sequences of different lengths."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

import isometry.torch as it
from isometry.cli.network import Network

LENGTHS = (3, 7, 1, 5)


@pytest.fixture
def sequences():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(n, 2, generator=generator) for n in LENGTHS]


@pytest.mark.parametrize("layer", [it.nn.ORNN(2, 4), it.nn.ScuRNN(2, 4), nn.LSTM(2, 4)], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("last_only", [True, False])
def test_packed_sequences_are_read_one_by_one(sequences, layer, last_only):
    """Each as if it were alone, in the order given, whatever its length; real and complex states."""
    network = Network(layer, 2, 3, last_only=last_only)
    packed = pack_sequence(sequences, enforce_sorted=False)
    values = network(packed)
    alone = [network(x[:, None]) for x in sequences]
    if last_only:
        assert torch.allclose(values, torch.cat(alone), atol=1e-6)
        return
    assert values.shape == (sum(LENGTHS), 3)
    padded, lengths = pad_packed_sequence(packed._replace(data=values))
    assert tuple(lengths) == LENGTHS
    for b, (n, one) in enumerate(zip(LENGTHS, alone, strict=True)):
        assert torch.allclose(padded[:n, b], one[:, 0], atol=1e-6)


@pytest.mark.parametrize("kind", [it.nn.ORNN, it.nn.EURNN, it.nn.GORU, it.nn.DeltaProduct])
def test_last_states_and_their_gradients_have_the_bits_of_all_states(kind):
    """The layer, and a module around it, whose last of all states is taken; afterwards the layer returns all again."""
    layer = kind(2, 4)

    class AllStates(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x)

    x = torch.randn(9, 3, 2, generator=torch.Generator().manual_seed(0))
    networks = [Network(module, 2, 3, last_only=True) for module in (layer, AllStates())]
    networks[1].readout.load_state_dict(networks[0].readout.state_dict())
    returned = []
    layer.register_forward_hook(lambda *call: returned.append(call[-1][0].dim()))
    values = [network(x) for network in networks]
    assert returned == [2, 3]
    assert torch.equal(*values)
    gradients = [torch.autograd.grad(v.square().sum(), list(layer.parameters())) for v in values]
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    assert layer(x)[0].shape[:2] == (9, 3)


def test_a_forward_of_its_own_receives_all_states():
    """A class built on a layer appends the input to every state."""

    class Appended(it.nn.ORNN):
        def forward(self, input, hx=None):
            states, last = super().forward(input, hx)
            return torch.cat([states, input], -1), last

    layer = Appended(2, 4)
    x = torch.randn(9, 3, 2, generator=torch.Generator().manual_seed(0))
    network = Network(layer, 2, 3, last_only=True)
    assert torch.equal(network(x), network.readout(layer(x)[0][-1]))
