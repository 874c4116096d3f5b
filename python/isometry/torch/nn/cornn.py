"""CoRNN: a network of coupled oscillators."""

from typing import Unpack

from ..._cells.cornn import setting
from ._contract import LayerKeywords
from ._pair import PairLayer


class CoRNN(PairLayer):
    r"""Coupled oscillatory recurrent network (CoRNN): a recurrent layer of driven, damped oscillators.

    .. math::

        z_t = z_{t-1} + \Delta t \, (\tanh(W_y y_{t-1} + W_z z_{t-1} + U x_t + b)
        - \gamma y_{t-1} - \epsilon z_{t-1}), \qquad
        y_t = y_{t-1} + \Delta t \, z_t.

    The output is y. States are pairs (y, z), in calls of the layer and of ``step``.

    Use it to classify smooth recordings: gunpoint 0.962, torch's GRU 0.856. Do not use it for text: english 0.000,
    `GRU` 0.462.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    dt, gamma, epsilon : float
        The length of a step, the squared frequency and the damping of the oscillators; not trained. The defaults are
        the paper's for images read pixel by pixel.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``last_only`` and ``checkpoint``, here "none" or
        "sqrt".

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        U (hidden_size, features).
    weight_hh_l{k}[_reverse] : Parameter
        W_y and W_z (2, hidden_size, hidden_size).
    bias_l{k}[_reverse] : Parameter
        b (hidden_size).
    y0_l{k}[_reverse], z0_l{k}[_reverse] : Parameter
        The initial state (hidden_size), with ``trainable_h0``.

    See Also
    --------
    LEM : two parts with steps of their own lengths.
    isometry.torch.cornn : as a function.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    Notes
    -----
    Weights and biases are drawn uniformly within 1 / sqrt(features + 2 hidden_size), as in the authors' code, where one
    linear map takes x, z and y together. Saved for backward are y, z and the tanh of every step.

    References
    ----------
    Rusch, Mishra. Coupled oscillatory recurrent neural network (coRNN): an accurate and (gradient) stable architecture
    for learning long time dependencies. ICLR 2021, arXiv 2010.00951.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.CoRNN(3, 8, dt=0.1, gamma=1.0, epsilon=0.5)
    >>> output, (y_n, z_n) = layer(torch.randn(20, 5, 3))
    >>> output.shape, y_n.shape, z_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]), torch.Size([1, 5, 8]))
    """

    _own_keywords = ("dt", "gamma", "epsilon")
    _cell = "cornn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        dt: float = 0.042,
        gamma: float = 2.7,
        epsilon: float = 4.7,
        **keywords: Unpack[LayerKeywords],
    ) -> None:
        self.dt, self.gamma, self.epsilon = setting(dt, gamma, epsilon)
        super().__init__(input_size, hidden_size, num_layers, **keywords)

    def _reset(self, suffix: str) -> None:
        self._draw_as_torch(suffix, getattr(self, "weight_ih" + suffix).size(-1) + 2 * self.hidden_size)
