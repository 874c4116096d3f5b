"""The coupled oscillatory network over a whole sequence in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from ..._cells.cornn import CORNN, setting
from ._sequence import Options, both_parts


def cornn(
    x: Tensor,
    w: Tensor,
    u: Tensor,
    b: Tensor | None = None,
    *,
    dt: float,
    gamma: float,
    epsilon: float,
    y0: Tensor | None = None,
    z0: Tensor | None = None,
    lengths: Tensor | Sequence[int] | None = None,
    reverse: bool = False,
    backend: str | None = None,
    checkpoint: Literal["none", "sqrt", "reversible"] = "none",
    output: Literal["states", "last"] = "states",
    starts: Tensor | None = None,
    start_state: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    r"""All states (y, z) of a coupled oscillatory network (CoRNN).

    .. math::

        z_t = z_{t-1} + \Delta t \, (\tanh(W_y y_{t-1} + W_z z_{t-1} + U x_t + b)
        - \gamma y_{t-1} - \epsilon z_{t-1}), \qquad
        y_t = y_{t-1} + \Delta t \, z_t.

    Parameters
    ----------
    x : Tensor, shape (T, B, d)
        The input, real.
    w : Tensor, shape (2, n, n)
        W_y and W_z.
    u : Tensor, shape (n, d)
        U.
    b : Tensor, shape (n,), or None
        b, zero if None.
    dt, gamma, epsilon : float
        The numbers of the formula, finite; they have no gradients.
    y0, z0 : Tensor, shape (B, n) or (n,), optional
        The state before the first step, zero if not given.
    lengths : Tensor or sequence of int, shape (B,), optional
        The length of each sequence, from 0 to T. States past the end are zero.
    reverse : bool
        Whether each sequence is read from its own end; states keep the position of their input.
    backend : {"cpu"}, optional
        Where the kernels run; the GPU has none for this cell.
    checkpoint : {"none", "sqrt"}
        What is saved for backward. "none": all states, and the tanh. "sqrt": some sqrt(T) states, between which
        segments are computed again; states and gradients are the same to the last bit.
    output : {"states", "last"}
        "last" returns only the last state of each sequence, (B, n): (y0, z0) for one of length 0.
    starts : Tensor, shape (T, B), bool, optional
        Reset mask: where starts[t, b] holds, a sequence begins at step t of column b, from start_state. Values
        and gradients are those of separate calls; with `reverse` the piece with a column's last step starts from
        (y0, z0).
    start_state : pair of Tensor, (T, B, n), (B, n) or (n,) each, optional
        The state (y, z) before each marked step, entries of other steps not being read, or before all of them; zero if
        not given. With `reverse` start_state[t] is before the steps up to t - 1.

    Returns
    -------
    y, z : Tensor, shape (T, B, n), or (B, n) with output "last"

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lengths outside 0..T, unknown names, a dt, gamma or epsilon that is not
        finite.
    TypeError
        Arguments other than real tensors of one precision, a start_state that is no pair, lengths that are not
        integers, a reverse that is not a bool.
    NotImplementedError
        The backend "gpu".

    Notes
    -----
    Per step and sequence 4 n^2 + 2 n d flops, backward twice that. Saved for backward are y, z and the tanh.

    An ensemble is E recurrences of the same sizes in one call: x of shape (T, E, B, d), or (T, 1, B, d) for all
    replicas; the other arrays may have the replicas as a further first axis, w (E, 2, n, n), y0 (E, B, n) and so on.
    Its states are (T, E, B, n). It takes no checkpoint.

    References
    ----------
    Rusch, Mishra. Coupled oscillatory recurrent neural network (coRNN). ICLR 2021, arXiv 2010.00951, equation 3.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> x, w, u = torch.randn(20, 5, 3), torch.randn(2, 8, 8), torch.randn(8, 3)
    >>> y, z = it.cornn(x, w, u, dt=0.1, gamma=1.0, epsilon=0.5)
    >>> y.shape, z.shape
    (torch.Size([20, 5, 8]), torch.Size([20, 5, 8]))
    """
    given = {"x": x, "w": w, "u": u, "b": b, "y0": y0, "z0": z0, "activation_bias": None, "start_state": start_state}
    options = Options("tanh", 0.0, setting(dt, gamma, epsilon), lengths, reverse, starts, backend, checkpoint, output)
    return both_parts(CORNN, given, options)
