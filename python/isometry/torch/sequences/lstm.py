"""The LSTM over a whole sequence in one call, as `nn.LSTM` calls it: states are (h, c), 2n numbers."""

from __future__ import annotations

from torch import Tensor

from .._dispatch.plan import Tensors
from ._sequence import run


def lstm(
    x: Tensor,
    weights: Tensors,
    h0: Tensor | None,
    lengths: Tensor | None,
    reverse: bool,
    *,
    checkpoint: str = "none",
    output: str = "states",
    starts: Tensor | None = None,
    start_state: Tensor | None = None,
) -> Tensor:
    """All states (T, B, 2n), or with output "last" the last of each sequence (B, 2n).

    `weights` are W (4n, n), U (4n, d) and b (4n) or None, in the order i, f, g, o; h0 and start_state are (B, 2n) or
    (2n,); the rest is as in `gru`.
    """
    w, u, b = weights
    given = {"x": x, "w": w, "u": u, "b": b, "h0": h0, "activation_bias": None, "start_state": start_state}
    law = "tanh", 0.0, lengths, reverse, None
    return run("lstm", None, given, (), *law, checkpoint=checkpoint, output=output, starts=starts)[0]
