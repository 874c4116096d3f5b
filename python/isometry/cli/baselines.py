"""The LSTM and the RNN with the initial values that long sequences need."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

import isometry.torch as it
from isometry._rules import check


class LSTM(it.nn.LSTM):
    """it.nn.LSTM whose biases start at zero, except the forget gate's."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, *, forget_bias: float = 1.0, **keywords: Any
    ) -> None:
        if not abs(check.number("forget_bias", forget_bias)) <= torch.finfo(torch.float32).max:  # NaN compares false
            raise ValueError(f"forget_bias must be a finite number of single precision, not {forget_bias}")
        super().__init__(input_size, hidden_size, num_layers, **keywords)
        n = self.hidden_size
        for name, parameter in self.named_parameters():
            if name.startswith("bias"):  # gates in the order input, forget, cell, output; the two biases are added
                nn.init.zeros_(parameter)
                if name.startswith("bias_ih"):
                    nn.init.constant_(parameter[n : 2 * n], forget_bias)

    def recurrent_parameters(self) -> Iterator[nn.Parameter]:
        """The matrices that multiply the state."""
        yield from (p for name, p in self.named_parameters() if name.startswith("weight_hh"))


class RNN(it.nn.RNN):
    """it.nn.RNN whose recurrent matrix starts orthogonal but is trained freely; biases start at zero."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, *, nonlinearity: str = "tanh", **keywords: Any
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, nonlinearity, **keywords)
        for name, parameter in self.named_parameters():
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(parameter)
            elif name.startswith("bias"):
                nn.init.zeros_(parameter)
