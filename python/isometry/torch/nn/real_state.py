"""RealState: states of any layer as real features."""

from __future__ import annotations

from torch import Tensor, nn

from ..operators._operator import tensor
from ..realform import real_state


class RealState(nn.Module):
    """A module between a layer and its readout: complex states become 2 n real features, real ones pass.

    `real_state`, [Re z | Im z]. ``layer.output_size`` is the number of features behind it, so that one model serves
    layers of both fields.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> for kind in (it.nn.ScoRNN, it.nn.ScuRNN):
    ...     layer = kind(3, 8)
    ...     readout = torch.nn.Sequential(it.nn.RealState(), torch.nn.Linear(layer.output_size, 2))
    ...     print(layer.output_size, readout(layer(torch.randn(20, 5, 3))[0]).shape)
    8 torch.Size([20, 5, 2])
    16 torch.Size([20, 5, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The features (..., n), or (..., 2 n) of complex states."""
        return real_state(input) if tensor("input", input).is_complex() else input
