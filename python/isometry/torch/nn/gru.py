"""GRU: the gated recurrent unit with free matrices."""

from typing import Any, Literal, Unpack

import torch
from torch import Tensor

from ..formulas.gru import apart
from ._contract import HeadKeywords
from ._gates import GatedLayer, is_torch, reordered
from ._step import Kernel


class GRU(GatedLayer):
    r"""Gated recurrent layer (GRU) with unconstrained matrices.

    .. math::

        z_t = \sigma(W_z h_{t-1} + U_z x_t + b_z), \qquad r_t = \sigma(W_r h_{t-1} + U_r x_t + b_r), \\
        c_t = \tanh(W_h (r_t * h_{t-1}) + U_h x_t + b_h), \qquad h_t = z_t * h_{t-1} + (1 - z_t) * c_t.

    With ``reset="after"`` :math:`c_t = \tanh(r_t * (W_h h_{t-1} + b'_h) + U_h x_t + b_h)`, as in
    ``torch.nn.GRU``: `from_torch` and `to_torch` convert, and torch's state dicts load directly.

    Use it for text and for state tracking: english 0.462, torch's GRU 0.429; permutations 1.000, as torch's. Do not use
    it to reproduce everything after many steps: copying 0.163, `ScuRNN` 1.000.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        As in ``torch.nn.GRU``, in its order.
    reset : {"before", "after"}
        Whether the reset gate acts on the state before W_h, or on the product after it.
    **keywords
        The keywords of :class:`ORNN` from ``trainable_h0`` on, including ``last_only`` and ``checkpoint``, here "none"
        or "sqrt".

    Attributes
    ----------
    weight_hh_l{k}[_reverse] : Parameter
        W_z, W_r and W_h (3, hidden_size, hidden_size).
    weight_ih_l{k}[_reverse] : Parameter
        U_z, U_r and U_h (3, hidden_size, features).
    bias_l{k}[_reverse] : Parameter
        b_z, b_r and b_h (3, hidden_size).
    hidden_bias_l{k}[_reverse] : Parameter
        With ``reset="after"``, torch's second bias b' (3, hidden_size); those of z and r add to b. From a state dict
        without second biases they are zero.

    See Also
    --------
    GORU : an orthogonal matrix in the candidate state.
    from_torch : converts torch's layer.
    isometry.torch.gru : as a function.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`faster-gru` : torch's own layers on these kernels.

    Notes
    -----
    W and U of each gate are drawn uniformly within +-sqrt(6 / (rows + columns)); biases are zero.

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
    _cell = "gru"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        reset: Literal["before", "after"] = "before",
        **keywords: Unpack[HeadKeywords],
    ) -> None:
        self.reset = reset
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, **keywords)

    @property
    def _second(self) -> bool:
        return self.bias and self.reset == "after"

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        shapes = super()._shapes(features)
        return shapes | {"hidden_bias": (3, self.hidden_size)} if self._second else shapes

    def _as_stored(self, suffix: str) -> Kernel:
        return super()._kernel(suffix)

    def _kernel(self, suffix: str) -> Kernel:
        cell, settings, activation, slope, arrays = self._as_stored(suffix)
        b, hidden_bias = apart(arrays["b"], arrays["hidden_bias"])
        return Kernel(cell, settings, activation, slope, arrays | {"b": b, "hidden_bias": hidden_bias})

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Torch's own names and shapes are recognised; without second biases these are zero."""
        errors = rest[-1]
        theirs = [suffix for suffix in self._suffixes if is_torch(state_dict, prefix, suffix)]
        if theirs and self.reset != "after":
            errors.append(
                f"{type(self).__name__}(reset='before') cannot take the weights of torch.nn.GRU, which resets "
                "after the product: make the layer with reset='after'"
            )
        elif theirs:
            reordered(state_dict, prefix, theirs)
        elif self._second:
            self._completed(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _completed(self, state: dict[str, Any], prefix: str) -> None:
        """Zeros for second biases, if the state has none, where the rest of a recurrence is there."""
        second = {suffix: name for suffix in self._suffixes if (name := "hidden_bias" + suffix) in self._parameters}
        if not any(prefix + name in state for name in second.values()):
            for suffix, name in second.items():
                rest = [own for own in self._parameters if own.endswith(suffix) and own != name]
                if rest and all(isinstance(state.get(prefix + own), Tensor) for own in rest):
                    state[prefix + name] = torch.zeros_like(state.get(f"{prefix}bias{suffix}", getattr(self, name)))
