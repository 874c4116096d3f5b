"""The long expressive memory over a whole sequence in one call."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from ..._cells.lem import LEM, setting
from ._sequence import Options, both_parts


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
    lengths, reverse, backend, output, starts, start_state
        As in `cornn`.
    checkpoint : {"none", "sqrt"}
        What is saved for backward. "none": all states and gates. "sqrt": some sqrt(T) states, as in `cornn`.

    Returns
    -------
    y, z : Tensor, shape (T, B, n), or (B, n) with output "last"

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lengths outside 0..T, unknown names, a dt that is not finite.
    TypeError, NotImplementedError
        As of `cornn`.

    Notes
    -----
    Per step and sequence 8 n (n + d) flops, backward twice that. Saved for backward are y, z, both gates and both tanh.

    Ensembles are those of `cornn`, w (E, 4, n, n).

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
    options = Options("tanh", 0.0, setting(dt), lengths, reverse, starts, backend, checkpoint, output)
    return both_parts(LEM, given, options)
