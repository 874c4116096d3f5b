"""torch's own LSTM and RNN with the initial values that long sequences need."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn


class LSTM(nn.LSTM):
    """torch.nn.LSTM whose biases start at zero, but for the forget gate's."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias, False, dropout, bidirectional)
        for name, parameter in self.named_parameters():
            if name.startswith("bias"):  # gates in the order input, forget, cell, output; the two biases add up
                nn.init.zeros_(parameter)
                if name.startswith("bias_ih"):
                    nn.init.constant_(parameter[hidden_size : 2 * hidden_size], forget_bias)

    def recurrent_parameters(self) -> Iterator[nn.Parameter]:
        """The matrices that multiply the state."""
        return (p for name, p in self.named_parameters() if name.startswith("weight_hh"))


class RNN(nn.RNN):
    """torch.nn.RNN whose recurrent matrix starts orthogonal, and is then free; biases start at zero."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        nonlinearity: str = "tanh",
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, nonlinearity, bias, False, dropout, bidirectional)
        for name, parameter in self.named_parameters():
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(parameter)
            elif name.startswith("bias"):
                nn.init.zeros_(parameter)

    def recurrent_parameters(self) -> Iterator[nn.Parameter]:
        """The matrices that multiply the state."""
        return (p for name, p in self.named_parameters() if name.startswith("weight_hh"))

    def recurrent_matrix(self, layer: int = 0, reverse: bool = False) -> Tensor:
        """The free W of one layer and direction."""
        matrix: Tensor = getattr(self, f"weight_hh_l{layer}{'_reverse' if reverse else ''}")
        return matrix
