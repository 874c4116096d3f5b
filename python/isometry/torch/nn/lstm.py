"""LSTM: torch's layer of four gates."""

from torch import Tensor

from ._pair import PairLayer
from ._step import Kernel


class LSTM(PairLayer):
    r"""The layer of ``torch.nn.LSTM`` on the kernels of this package.

    .. math::

        (i'_t, f'_t, g'_t, o'_t) = W h_{t-1} + b' + U x_t + b, \qquad
        i, f, o = \sigma(i', f', o'), \qquad g = \tanh(g'), \\
        c_t = f_t * c_{t-1} + i_t * g_t, \qquad h_t = o_t * \tanh(c_t).

    States are pairs (h, c), in calls of the layer and of ``step``.

    Use it for state tracking, and for models of torch's: permutations and counting 1.000, as torch's. Do not use it to
    remember inputs over many steps: copying 0.000, `ScuRNN` 1.000; adding 0.001, `RUM` 0.997.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        As in ``torch.nn.LSTM``, in its order, which also has ``proj_size``.
    **keywords
        The keywords of :class:`ORNN` from ``trainable_h0`` on, including ``last_only`` and ``checkpoint``, here "none"
        or "sqrt".

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        U (4 hidden_size, features), the rows of i, f, g and o.
    weight_hh_l{k}[_reverse] : Parameter
        W (4 hidden_size, hidden_size).
    bias_ih_l{k}[_reverse], bias_hh_l{k}[_reverse] : Parameter
        b and b' (4 hidden_size).
    h0_l{k}[_reverse], c0_l{k}[_reverse] : Parameter
        The initial state (hidden_size), with ``trainable_h0``.

    See Also
    --------
    GRU, GORU : gates without a second state.
    from_torch : converts torch's layer.
    isometry.torch.lstm : as a function.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`faster-gru` : torch's own layers on these kernels.

    Notes
    -----
    Names, shapes, the state dict and the initial draws are those of ``torch.nn.LSTM``; `from_torch` and `to_torch`
    convert. Saved for backward are h, c and the four gates of every step.

    References
    ----------
    Hochreiter, Schmidhuber. Long short-term memory. Neural Computation 1997.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.LSTM(3, 8)
    >>> output, (h_n, c_n) = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape, c_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]), torch.Size([1, 5, 8]))
    """

    _cell, _divisible = "lstm", True
    _parts_of_hx = ("hx", "cx")

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        n, k = self.hidden_size, self._head_size
        w = self._of_heads(4 * k, k)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (4 * n, features), "weight_hh": w}
        return shapes | {"bias_ih": (4 * n,), "bias_hh": (4 * n,)} if self.bias else shapes

    def _arrays(self, suffix: str) -> dict[str, Tensor | None]:
        """W, U and the sum of the biases."""
        b = self._read("bias_ih" + suffix) + self._read("bias_hh" + suffix) if self.bias else None
        return {"w": self._read("weight_hh" + suffix), "u": self._read("weight_ih" + suffix), "b": b}

    def _apart(self, suffix: str) -> tuple[Kernel, Tensor | None]:
        b, second = (self._read(name + suffix) if self.bias else None for name in ("bias_ih", "bias_hh"))
        arrays = {"w": self._read("weight_hh" + suffix), "u": self._read("weight_ih" + suffix), "b": b}
        return Kernel("lstm", (), "tanh", 0.1, arrays), second
