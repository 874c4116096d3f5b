"""Layers of this package that read the parameters of torch's own, for packages whose objects hold those.

Nothing is copied: a view has the very dictionary of parameters of its layer, so it follows optimisers, moves and
`load_state_dict`, and state dicts, copies and saved models hold nothing of it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from isometry.torch.nn import GRU, LSTM
from isometry.torch.nn._gates import NAMES, apart
from isometry.torch.nn._replacing import additions

from ._steps import Steps


class _GRU(GRU):
    """A GRU whose parameters have the names and shapes of torch."""

    def _read(self, name: str) -> Tensor:
        stem, _, suffix = name.rpartition("_l")
        return apart(super()._read(f"{_THEIRS[stem]}_l{suffix}"))


class View:
    """A view of a layer, and the steps of it."""

    def __init__(self, layer: Any, kind: Any) -> None:
        own = {"reset": "after"} if kind is _GRU else {}
        sizes = {name: getattr(layer, name) for name in ("input_size", "hidden_size", "num_layers", "bias")}
        self.layer: Any = kind(**sizes, bidirectional=layer.bidirectional, **own, device="meta")
        self.layer._parameters = layer._parameters
        self.names = frozenset(layer._parameters)
        self.step = Steps()


#: Torch's names of parameters by ours.
_THEIRS = {ours: theirs for theirs, ours in NAMES.items()}
_KINDS: dict[type, Any] = {nn.LSTM: LSTM, nn.GRU: _GRU}
_VIEWS: WeakKeyDictionary[nn.Module, View] = WeakKeyDictionary()


def view(layer: nn.Module, alike: Mapping[type, type] = MappingProxyType({})) -> View | None:
    """The view of an LSTM or GRU of torch on the CPU, or of another class that computes like one of them.

    It has the time in front. None for a layer that is more than its parameters: with hooks, computed weights or
    ``proj_size``, of a subclass, or compiled.
    """
    kind = _KINDS.get(alike.get(type(layer), type(layer)))
    if kind is None or torch.compiler.is_compiling():
        return None
    own: Any = layer
    found = _VIEWS.get(layer)
    if found is None or found.layer._parameters is not layer._parameters:
        if own.proj_size or additions(layer, tuple(layer._parameters)):
            return None
        found = _VIEWS[layer] = View(layer, kind)
    if additions(layer, found.names) or own.weight_ih_l0.device.type != "cpu":
        return None
    vars(found.layer).update(training=own.training, dropout=own.dropout)
    return found
