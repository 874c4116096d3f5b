"""The gated recurrent unit over a whole sequence in one call, and the code it shares with `goru`."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from ..._cells.gru import GRU, setting
from ._sequence import Options, run


def gru(
    x: Tensor,
    w: Tensor,
    u: Tensor | None = None,
    b: Tensor | None = None,
    *,
    input_weight: Tensor | None = None,
    bias: Tensor | None = None,
    h0: Tensor | None = None,
    reset: Literal["before", "after"] = "before",
    activation: str = "tanh",
    activation_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
    slope: float = 0.1,
    lengths: Tensor | Sequence[int] | None = None,
    reverse: bool = False,
    backend: str | None = None,
    checkpoint: Literal["none", "sqrt", "reversible"] = "none",
    output: Literal["states", "last"] = "states",
    starts: Tensor | None = None,
    start_state: Tensor | None = None,
) -> Tensor:
    r"""All states of a gated recurrent unit (GRU).

    .. math::

        z_t = \sigma(W_z h_{t-1} + U_z x_t + b_z), \qquad r_t = \sigma(W_r h_{t-1} + U_r x_t + b_r), \\
        h_t = z_t * h_{t-1} + (1 - z_t) * c_t,

    with :math:`c_t = \phi(W_h (r_t * h_{t-1}) + U_h x_t + b_h)`, or with reset "after"
    :math:`c_t = \phi(r_t * (W_h h_{t-1} + c_h) + U_h x_t + b_h)`, which is that of ``torch.nn.GRU`` (whose packed
    order of gates is r, z, h).

    Parameters
    ----------
    x : Tensor, shape (T, B, d)
        The input, real.
    w : Tensor, shape (3, n, n)
        W_z, W_r and W_h.
    u : Tensor, shape (3, n, d)
        U_z, U_r and U_h.
    b : Tensor, shape (3, n), or None
        b_z, b_r and b_h, zero if None.
    input_weight, bias : Tensor, optional
        Other names of u and b, those of `recurrence`.
    h0 : Tensor, shape (B, n) or (n,), optional
        The state before the first step, zero if not given.
    reset : {"before", "after"}
        Whether r acts on the state before W_h, or on the product after it.
    activation : str
        phi, one of the names of `activate`.
    activation_bias : Tensor, optional
        The bias of modReLU.
    hidden_bias : Tensor, shape (n,), optional
        c_h, with reset "after" only.
    slope : float
        The slope of "leaky_relu".
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
        "last" returns only the last state of each sequence, (B, n): h0 for one of length 0.
    starts : Tensor, shape (T, B), bool, optional
        Reset mask: where starts[t, b] holds, a sequence begins at step t of column b, from start_state. Values
        and gradients are those of separate calls; with `reverse` the piece with a column's last step starts from h0.
    start_state : Tensor, shape (T, B, n), (B, n) or (n,), optional
        The state before each marked step, entries of other steps not being read, or before all of them; zero if not
        given. With `reverse` start_state[t] is before the steps up to t - 1.

    Returns
    -------
    Tensor, shape (T, B, n), or (B, n) with output "last"

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lengths outside 0..T, unknown names, a hidden_bias with reset "before".
    TypeError
        Arguments other than real tensors of one precision, an argument under both of its names, lengths that are not
        integers, a reverse that is no bool.
    NotImplementedError
        starts with the backend "gpu".

    Notes
    -----
    An ensemble is E recurrences of the same sizes in one call: x of shape (T, E, B, d), or (T, 1, B, d) for all
    replicas; the other arrays may have the replicas as a further first axis, w (E, 3, n, n), h0 (E, B, n) and so on.
    Its states are (T, E, B, n). It takes no checkpoint.

    References
    ----------
    Cho et al. Learning phrase representations using RNN encoder-decoder for statistical machine translation.
    EMNLP 2014.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> x, w, u, b = torch.randn(20, 5, 3), torch.randn(3, 8, 8), torch.randn(3, 8, 3), torch.zeros(3, 8)
    >>> it.gru(x, w, u, b).shape
    torch.Size([20, 5, 8])

    With b_z large the state is kept:

    >>> b[0] = 100
    >>> torch.allclose(it.gru(x, w, u, b, h0=torch.ones(8)), torch.tensor(1.0))
    True
    """
    own, u, b = setting(reset, hidden_bias), either("u", u, input_weight=input_weight), either("b", b, bias=bias)
    given = {"x": x, "w": w, "u": u, "b": b, "h0": h0, "hidden_bias": hidden_bias}
    given |= {"activation_bias": activation_bias, "start_state": start_state}
    options = Options(activation, slope, own, lengths, reverse, starts, backend, checkpoint, output)
    return run(GRU, None, given, options)[0]


def either(name: str, value: Tensor | None, **instead: Tensor | None) -> Tensor | None:
    """An argument that may be given under another name."""
    ((other, own),) = instead.items()
    if value is not None and own is not None:
        raise TypeError(f"{name} and {other} are the same argument: give one of them")
    return value if own is None else own
