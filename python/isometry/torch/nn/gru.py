"""GRU: the gated recurrent unit with free matrices."""

from __future__ import annotations

from typing import Any, Literal, Unpack

from torch import Tensor

from ..sequences.gru import gru
from ._gated import GatedLayer
from ._keywords import LayerKeywords, Output
from ._streaming import Kernel


class GRU(GatedLayer):
    r"""Gated recurrent layer (GRU) with free matrices: a baseline for the orthogonal layers.

    .. math::

        z_t = \sigma(W_z h_{t-1} + U_z x_t + b_z), \qquad r_t = \sigma(W_r h_{t-1} + U_r x_t + b_r), \\
        c_t = \tanh(W_h (r_t * h_{t-1}) + U_h x_t + b_h), \qquad h_t = z_t * h_{t-1} + (1 - z_t) * c_t.

    With ``reset="after"`` :math:`c_t = \tanh(r_t * (W_h h_{t-1}) + U_h x_t + b_h)`, which is that of ``torch.nn.GRU``
    without its second bias.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.GRU``.
    reset : {"before", "after"}
        Whether the reset gate acts on the state before W_h, or on the product after it.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on: ``checkpoint``, here "none" or "sqrt", and ``last_only`` among
        them.

    Attributes
    ----------
    weight_hh_l{k}[_reverse] : Parameter
        W_z, W_r and W_h (3, hidden_size, hidden_size).
    weight_ih_l{k}[_reverse] : Parameter
        U_z, U_r and U_h (3, hidden_size, features).
    bias_l{k}[_reverse] : Parameter
        b_z, b_r and b_h (3, hidden_size).

    References
    ----------
    Cho et al. Learning phrase representations using RNN encoder-decoder for statistical machine translation.
    EMNLP 2014.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.GRU(3, 8)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]))
    """

    _own_keywords = ("reset",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        reset: Literal["before", "after"] = "before",
        **keywords: Unpack[LayerKeywords],
    ) -> None:
        self.reset = reset
        super().__init__(input_size, hidden_size, num_layers, **keywords)

    def _run(
        self, suffix: str, x: Tensor, h0: Tensor | None, lengths: Tensor | None, reverse: bool, output: Output
    ) -> Tensor:
        law: dict[str, Any] = {"reset": self.reset, "checkpoint": self.checkpoint, "output": output}
        return gru(*self._given(suffix, x), h0=h0, lengths=lengths, reverse=reverse, **law)

    def _kernel(self, suffix: str) -> Kernel:
        return self._gates("gru", suffix, "tanh", None)
