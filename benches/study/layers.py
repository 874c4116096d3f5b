"""The layers of the study: of each the activations that are tried, as it is built by default in all else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import isometry.torch as it

UNITS = 64
REAL = ("modrelu", "leaky_relu", "tanh", "oplu")
COMPLEX = ("modrelu", "tanh", "leaky_relu")
#: Per layer its activations, the first one its default; "" for a layer that has no choice.
ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "ORNN": ("leaky_relu", "modrelu", "tanh", "oplu"),
    "ScoRNN": REAL,
    "ExpRNN": REAL,
    "SoftORNN": ("tanh", "modrelu", "leaky_relu", "oplu"),
    "ScuRNN": COMPLEX,
    "URNN": COMPLEX,
    "EURNN": COMPLEX,
    "UnitaryORNN": COMPLEX,
    "FullCapacityURNN": COMPLEX,
    "KRU": COMPLEX,
    "GORU": ("tanh", "modrelu", "leaky_relu"),
    "RUM": ("relu", "tanh"),
    "RNN": ("tanh", "relu"),
    "GRU": ("",),
    "LSTM": ("",),
    "CoRNN": ("",),
    "LEM": ("",),
    "DeltaProduct": ("",),
    "torch GRU": ("",),
    "torch LSTM": ("",),
}


class Choice(NamedTuple):
    layer: str
    activation: str

    @property
    def name(self) -> str:
        return f"{self.layer}, {self.activation}" if self.activation else self.layer


def choices() -> list[Choice]:
    """Of the layers that this version has."""
    there = (layer for layer in ACTIVATIONS if layer.startswith("torch ") or hasattr(it.nn, layer))
    return [Choice(layer, activation) for layer in there for activation in ACTIVATIONS[layer]]


class Network(nn.Module):
    """A layer and a linear readout of its states, real and imaginary parts."""

    def __init__(self, choice: Choice, inputs: int, outputs: int, *, last_only: bool) -> None:
        super().__init__()
        source: Any = nn if choice.layer.startswith("torch ") else it.nn
        make: Callable[..., nn.Module] = getattr(source, choice.layer.removeprefix("torch "))
        keywords = {"nonlinearity": choice.activation} if choice.activation else {}
        self.layer, self.last_only = make(inputs, UNITS, **keywords), last_only
        with torch.no_grad():
            features = self.layer(torch.zeros(1, 1, inputs))[0]
        self.readout = nn.Linear(features.shape[-1] * (2 if features.is_complex() else 1), outputs)

    def read(self, states: Tensor) -> Tensor:
        values: Tensor = self.readout(it.real_state(states) if states.is_complex() else states)
        return values

    @contextmanager
    def stepping(self) -> Iterator[Callable[[Tensor, Any], tuple[Tensor, Any]]]:
        """A function of x (B, inputs) and the memory before it that gives the state and the memory after it."""
        layer: Any = self.layer

        def call(x: Tensor, memory: Any) -> tuple[Tensor, Any]:
            states, after = layer(x[None], memory)
            return states[0], after

        def step(x: Tensor, memory: Any) -> tuple[Tensor, Any]:
            after = layer.step(x, memory)
            return (after[0] if isinstance(after, tuple) else after)[-1], after

        if isinstance(layer, (nn.GRU, nn.LSTM)):
            yield call
        else:
            with layer.cached():
                yield layer.step if isinstance(layer, it.nn.DeltaProduct) else step

    def forward(self, x: Any) -> Tensor:
        states = self.layer(x)[0]
        if isinstance(states, nn.utils.rnn.PackedSequence):
            padded, lengths = nn.utils.rnn.pad_packed_sequence(states)
            return self.read(padded[lengths - 1, torch.arange(len(lengths))])
        return self.read(states[-1] if self.last_only else states)
