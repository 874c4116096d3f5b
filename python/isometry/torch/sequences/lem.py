"""The long expressive memory over a whole sequence in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from ..._cells.lem import LEM, setting
from ._sequence import run


def lem(
    x: Tensor,
    w: Tensor,
    u: Tensor,
    b: Tensor | None = None,
    *,
    dt: float = 1.0,
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
    r"""All states (y, z) of a long expressive memory (LEM).

    .. math::

        s^{(i)}_t = \sigma(W_i y_{t-1} + U_i x_t + b_i), \quad i = 1, 2, \\
        z_t = (1 - \Delta t \, s^{(1)}_t) * z_{t-1} + \Delta t \, s^{(1)}_t * \tanh(W_z y_{t-1} + U_z x_t + b_z), \\
        y_t = (1 - \Delta t \, s^{(2)}_t) * y_{t-1} + \Delta t \, s^{(2)}_t * \tanh(W_y z_t + U_y x_t + b_y).

    Parameters
    ----------
    x : Tensor, shape (T, B, d)
        The input, real.
    w : Tensor, shape (4, n, n)
        W_1, W_2, W_z and W_y.
    u : Tensor, shape (4, n, d)
        U, in the same order.
    b : Tensor, shape (4, n), or None
        b, zero if None.
    dt : float
        The longest step, finite; it has no gradient.
    y0, z0 : Tensor, shape (B, n) or (n,), optional
        The state before the first step, zero if not given.
    lengths : Tensor or sequence of int, shape (B,), optional
        The length of each sequence, from 0 to T. States past the end are zero.
    reverse : bool
        Whether each sequence is read from its own end; states keep the place of their input.
    backend : {"cpu"}, optional
        Where the kernels run; the GPU has none for this cell.
    checkpoint : {"none", "sqrt"}
        What is saved for backward. "none": all states and gates. "sqrt": some sqrt(T) states, between which
        segments are computed again; states and gradients are the same to the last bit.
    output : {"states", "last"}
        "last" returns only the last state of each sequence, (B, n): (y0, z0) for one of length 0.
    starts : Tensor, shape (T, B), bool, optional
        Marks: where starts[t, b] holds, a sequence begins at step t of column b, from start_state. Values
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
        Shapes that do not fit, T, B or n of 0, lengths outside 0..T, unknown names, a dt that is not finite.
    TypeError
        Arguments other than real tensors of one precision, a start_state that is no pair, lengths that are not
        integers, a reverse that is not a bool.
    NotImplementedError
        The backend "gpu".

    Notes
    -----
    Per step and sequence 8 n (n + d) flops, backward twice that. Saved for backward are y, z, both gates and both tanh.

    An ensemble is E recurrences of the same sizes in one call: x of shape (T, E, B, d), or (T, 1, B, d) for all
    members; the other arrays may have the members as a further first axis, w (E, 4, n, n), y0 (E, B, n) and so on.
    Its states are (T, E, B, n). It takes no checkpoint.

    References
    ----------
    Rusch, Mishra, Erichson, Mahoney. Long expressive memory for sequence modeling. ICLR 2022, arXiv 2110.04744,
    equation 3.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> x, w, u = torch.randn(20, 5, 3), torch.randn(4, 8, 8), torch.randn(4, 8, 3)
    >>> y, z = it.lem(x, w, u, dt=0.5)
    >>> y.shape, z.shape
    (torch.Size([20, 5, 8]), torch.Size([20, 5, 8]))
    """
    given = {"x": x, "w": w, "u": u, "b": b, "y0": y0, "z0": z0, "activation_bias": None, "start_state": start_state}
    law = setting(dt), "tanh", 0.0, lengths, reverse, backend
    states, _ = run("lem", None, given, *law, checkpoint=checkpoint, output=output, starts=starts, own=LEM)
    y, z = states.chunk(2, -1)
    return y.contiguous(), z.contiguous()
