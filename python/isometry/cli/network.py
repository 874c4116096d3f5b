"""The network that is trained: a recurrent layer and a linear readout."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from isometry.torch.nn._base import RecurrentLayer
from isometry.torch.realform import real_state


class Network(nn.Module):
    """A recurrent layer and its readout o = Y h + c, Y uniform on +-sqrt(6 / (features + outputs)), c = 0.

    A complex state enters the readout as [Re h | Im h]. The layer maps x (T, B, inputs) to a tuple that begins with its
    states (T, B, features). For a PackedSequence the readout sees the last state of each sequence, or the packed data.
    """

    def __init__(self, layer: nn.Module, inputs: int, outputs: int, *, last_only: bool) -> None:
        super().__init__()
        self.layer, self.last_only = layer, last_only
        self.sizes = {"inputs": inputs, "outputs": outputs, "last_only": last_only}  # to rebuild it
        layer.eval()
        with torch.no_grad():
            found = layer(torch.zeros(2, 1, inputs))
        layer.train()
        states = found[0] if isinstance(found, tuple) and found else None
        if not isinstance(states, Tensor) or states.shape[:2] != (2, 1) or states.dim() != 3:
            what = tuple(states.shape) if isinstance(states, Tensor) else type(found).__name__
            raise TypeError(f"forward must return (states, last), states of shape (T, B, features), not {what}")
        features = states.shape[-1] * (2 if states.is_complex() else 1)
        self.readout = nn.Linear(features, outputs)
        nn.init.xavier_uniform_(self.readout.weight)
        nn.init.zeros_(self.readout.bias)

    def forward(self, x: Tensor | PackedSequence) -> Tensor:
        with only_last_states(self.layer) if self.last_only else nullcontext():
            states = self.layer(x)[0]
        if isinstance(states, PackedSequence):
            states = last_states(states) if self.last_only else states.data
        elif self.last_only and states.dim() == 3:  # (T, B, features)
            states = states[-1]
        if states.is_complex():
            states = real_state(states)
        values: Tensor = self.readout(states)
        return values


@contextmanager
def only_last_states(layer: nn.Module) -> Iterator[None]:
    """Set ``last_only`` of a layer of Isometry within the context: faster than ``states[-1]``, whose gradient is padded
    with zeros to all steps.

    Afterwards the layer returns all states again, as callers of `load_run` expect. A class that defines its own forward
    is left alone, since it may need all of them.
    """
    if not isinstance(layer, RecurrentLayer) or not layer._runs_as_defined:
        yield
        return
    layer.last_only = True
    try:
        yield
    finally:
        layer.last_only = False


def recurrent_matrices(layer: Any) -> list[Tensor]:
    """W of every layer and direction; none where the class has no such method."""
    if not hasattr(layer, "recurrent_matrix"):
        return []
    sides: tuple[tuple[bool, ...], ...] = ((), (True,)) if getattr(layer, "bidirectional", False) else ((),)
    places = [(k, *side) if k or side else () for k in range(getattr(layer, "num_layers", 1)) for side in sides]
    return [layer.recurrent_matrix(*place) for place in places]


def last_states(states: PackedSequence) -> Tensor:
    """The state (B, features) at the end of each sequence."""
    padded, lengths = pad_packed_sequence(states)
    return padded[lengths - 1, torch.arange(padded.shape[1])]
