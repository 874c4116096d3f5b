"""Every `torch.nn.RNN`, `GRU`, `LSTM` and cell of a program on the kernels of this package, by one line.

torch has no kernel of its own under the operators ``aten::lstm``, ``gru``, ``rnn_tanh``, ``rnn_relu`` and those of the
cells: it computes them by a composition of others. A kernel that is registered over them serves whoever calls the
operator, modules and TorchScript, and nothing else changes.
"""

from ._registration import Registration, register

__all__ = ["Registration", "register"]
