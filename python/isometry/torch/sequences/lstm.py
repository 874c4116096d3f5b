"""The LSTM over a whole sequence in one call: for the kernels a state is h and c side by side, 2n numbers."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from ..._cells.lstm import LSTM
from ._sequence import Given, Options, both_parts

#: Arrays with an entry for each gate, and how many axes come after its rows.
_ROWS = ("w", 1), ("u", 1), ("b", 0)


def lstm(
    x: Tensor,
    w: Tensor,
    u: Tensor,
    b: Tensor | None = None,
    *,
    h0: Tensor | None = None,
    c0: Tensor | None = None,
    lengths: Tensor | Sequence[int] | None = None,
    reverse: bool = False,
    backend: str | None = None,
    checkpoint: Literal["none", "sqrt", "reversible"] = "none",
    output: Literal["states", "last"] = "states",
    starts: Tensor | None = None,
    start_state: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    r"""All states (h, c) of an LSTM.

    .. math::

        (i'_t, f'_t, g'_t, o'_t) = W h_{t-1} + U x_t + b, \qquad
        i, f, o = \sigma(i', f', o'), \qquad g = \tanh(g'), \\
        c_t = f_t * c_{t-1} + i_t * g_t, \qquad h_t = o_t * \tanh(c_t).

    Parameters
    ----------
    x : Tensor, shape (T, B, d)
        The input, real.
    w : Tensor, shape (4, n, n)
        W_i, W_f, W_g and W_o: the rows of ``torch.nn.LSTM``'s weight_hh.
    u : Tensor, shape (4, n, d)
        U, in the same order.
    b : Tensor, shape (4, n), or None
        b, zero if None; the sum of torch's two biases.
    h0, c0 : Tensor, shape (B, n) or (n,), optional
        The state before the first step, zero if not given.
    lengths : Tensor or sequence of int, shape (B,), optional
        The length of each sequence, from 0 to T. States past the end are zero.
    reverse : bool
        Whether each sequence is read from its own end; states keep the position of their input.
    backend : {"cpu", "gpu"}, optional
        Where the kernels run; by default as `use_backend` says. The GPU takes float32 and no starts.
    checkpoint : {"none", "sqrt"}
        The states and gates that are saved for backward. "none": all. "sqrt": some sqrt(T) states, between which
        segments are computed again; states and gradients are the same to the last bit.
    output : {"states", "last"}
        "last" returns only the last state of each sequence, (B, n): (h0, c0) for one of length 0.
    starts : Tensor, shape (T, B), bool, optional
        Reset mask: where starts[t, b] holds, a sequence begins at step t of column b, from start_state. Values
        and gradients are those of separate calls; with `reverse` the piece with a column's last step starts from
        (h0, c0).
    start_state : pair of Tensor, (T, B, n), (B, n) or (n,) each, optional
        The state (h, c) before each marked step, entries of other steps not being read, or before all of them; zero if
        not given. With `reverse` start_state[t] is before the steps up to t - 1.

    Returns
    -------
    h, c : Tensor, shape (T, B, n), or (B, n) with output "last"

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lengths outside 0..T, unknown names.
    TypeError
        Arguments other than real tensors of one precision, a start_state that is no pair, lengths that are not
        integers, a reverse that is not a bool.
    NotImplementedError
        starts with the backend "gpu".

    Notes
    -----
    Per step and sequence 8 n (n + d) flops, backward twice that. Saved for backward are h, c and the four gates.

    An ensemble is E recurrences of the same sizes in one call: x of shape (T, E, B, d), or (T, 1, B, d) for all
    replicas; the other arrays may have the replicas as a further first axis, w (E, 4, n, n), h0 (E, B, n) and so on.
    Its states are (T, E, B, n). It takes no checkpoint.

    References
    ----------
    Hochreiter, Schmidhuber. Long short-term memory. Neural Computation 1997.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> x, w, u, b = torch.randn(20, 5, 3), torch.randn(4, 8, 8), torch.randn(4, 8, 3), torch.zeros(4, 8)
    >>> h, c = it.lstm(x, w, u, b)
    >>> h.shape, c.shape
    (torch.Size([20, 5, 8]), torch.Size([20, 5, 8]))

    With open forget gates and closed input gates c is kept:

    >>> b[0], b[1] = -100, 100
    >>> _, c = it.lstm(0 * x, 0 * w, u, b, c0=torch.ones(8))
    >>> torch.allclose(c, torch.tensor(1.0))
    True
    """
    given = {"x": x, "w": w, "u": u, "b": b, "h0": h0, "c0": c0, "activation_bias": None, "start_state": start_state}
    options = Options("tanh", 0.0, (), lengths, reverse, starts, backend, checkpoint, output)
    return both_parts(LSTM, given, options, _packed)


def _packed(tensors: Given) -> Given:
    """The kernels take the rows of all gates in one matrix."""
    packed = dict(tensors)
    for name, rank in _ROWS:
        t = tensors[name]
        packed[name] = None if t is None else t.flatten(-2 - rank, -1 - rank)
    return packed
