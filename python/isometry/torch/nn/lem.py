"""LEM: the long expressive memory."""

from typing import Unpack

from ..._cells.lem import setting
from ._contract import LayerKeywords
from ._pair import PairLayer


class LEM(PairLayer):
    r"""Long expressive memory (LEM): a recurrent layer of two parts, each with steps of its own lengths.

    .. math::

        s^{(i)}_t = \sigma(W_i y_{t-1} + U_i x_t + b_i), \quad i = 1, 2, \\
        z_t = (1 - \Delta t \, s^{(1)}_t) * z_{t-1} + \Delta t \, s^{(1)}_t * \tanh(W_z y_{t-1} + U_z x_t + b_z), \\
        y_t = (1 - \Delta t \, s^{(2)}_t) * y_{t-1} + \Delta t \, s^{(2)}_t * \tanh(W_y z_t + U_y x_t + b_y).

    The output is y. States are pairs (y, z), in calls of the layer and of ``step``.

    Use it for state tracking, or to estimate a number from a signal: permutations 1.000; oscillator 0.969, the best of
    the study. Do not use it where a few of many inputs must be remembered: cue 0.124, `RUM` 1.000.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    dt : float
        The longest step; not trained.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``last_only`` and ``checkpoint``, here "none" or
        "sqrt".

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        U (4, hidden_size, features), of both gates, of z and of y.
    weight_hh_l{k}[_reverse] : Parameter
        W_1, W_2, W_z and W_y (4, hidden_size, hidden_size).
    bias_l{k}[_reverse] : Parameter
        b (4, hidden_size).
    y0_l{k}[_reverse], z0_l{k}[_reverse] : Parameter
        The initial state (hidden_size), with ``trainable_h0``.

    See Also
    --------
    CoRNN : driven oscillators.
    isometry.torch.lem : as a function.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    Notes
    -----
    Weights and biases are drawn uniformly within 1 / sqrt(hidden_size), as in the authors' code. Saved for backward are
    y, z, both gates and both tanh of every step.

    References
    ----------
    Rusch, Mishra, Erichson, Mahoney. Long expressive memory for sequence modeling. ICLR 2022, arXiv 2110.04744.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.LEM(3, 8)
    >>> output, (y_n, z_n) = layer(torch.randn(20, 5, 3))
    >>> output.shape, y_n.shape, z_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]), torch.Size([1, 5, 8]))
    """

    _own_keywords = ("dt",)
    _cell = "lem"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        dt: float = 1.0,
        **keywords: Unpack[LayerKeywords],
    ) -> None:
        (self.dt,) = setting(dt)
        super().__init__(input_size, hidden_size, num_layers, **keywords)
