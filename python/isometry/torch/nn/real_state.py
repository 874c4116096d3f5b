"""RealState: states of any layer as real features."""

from typing import overload

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from .._dispatch.function import HALF
from .._leaf import Leaf
from ..operators._operator import dense, tensor
from ..realform import real_state


class RealState(Leaf):
    """A module between a layer and its readout: complex states become 2 n real features, real ones pass.

    `real_state`, [Re z | Im z], of a tensor or of the output of a layer for a PackedSequence; real tensors, of float16
    and bfloat16 too, are returned themselves. ``layer.output_size`` is the number of features behind it, so that one
    model serves layers of both fields.

    See Also
    --------
    ScuRNN : a complex layer.
    isometry.torch.real_state : as a function.
    :doc:`recurrent-layers` : complex states.

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

    @overload
    def forward(self, input: Tensor) -> Tensor: ...

    @overload
    def forward(self, input: PackedSequence) -> PackedSequence: ...

    def forward(self, input: Tensor | PackedSequence) -> Tensor | PackedSequence:
        """The features (..., n), or (..., 2 n) of complex states; of a PackedSequence another one."""
        if isinstance(input, PackedSequence):
            return input._replace(data=self(input.data))
        half = dense("input", input).dtype in HALF
        return real_state(input) if not half and tensor("input", input).is_complex() else input
