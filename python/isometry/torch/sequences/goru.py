"""The gated orthogonal recurrent unit over a whole sequence in one call."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from ..._cells.goru import GORU
from ..._cells.gru import setting
from ..._rules import check
from ..operators._operator import Operator
from ._sequence import Options, run
from .gru import either


def goru(
    transition: Operator,
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
    slope: float = 0.1,
    lengths: Tensor | Sequence[int] | None = None,
    reverse: bool = False,
    backend: str | None = None,
    checkpoint: Literal["none", "sqrt", "reversible"] = "none",
    output: Literal["states", "last"] = "states",
    starts: Tensor | None = None,
    start_state: Tensor | None = None,
) -> Tensor:
    r"""All states of a gated orthogonal recurrent unit (GORU): `gru` with an operator as W_h.

    .. math::

        z_t = \sigma(W_z h_{t-1} + U_z x_t + b_z), \qquad r_t = \sigma(W_r h_{t-1} + U_r x_t + b_r), \\
        h_t = z_t * h_{t-1} + (1 - z_t) * c_t,

    with :math:`c_t = \phi(W_h (r_t * h_{t-1}) + U_h x_t + b_h)`, or with reset "after"
    :math:`c_t = \phi(r_t * (W_h h_{t-1}) + U_h x_t + b_h)`.

    Parameters
    ----------
    transition : Operator
        W_h, one real operator n x n: an orthogonal one, or any other. It is applied step by step where that is cheaper
        than forming its matrix once.
    x : Tensor, shape (T, B, d)
        The input, real.
    w : Tensor, shape (2, n, n)
        W_z and W_r.
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
    slope : float
        The slope of "leaky_relu".
    lengths : Tensor or sequence of int, shape (B,), optional
        The length of each sequence, from 0 to T. States past the end are zero.
    reverse : bool
        Whether each sequence is read from its own end; states keep the position of their input.
    backend : {"cpu", "gpu"}, optional
        Where the kernels run; by default as `use_backend` says. The GPU takes float32 and no starts, and W_h as a
        matrix.
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
        Shapes that do not fit, T, B or n of 0, a complex transition, lengths outside 0..T, unknown names.
    TypeError
        A transition that is not an operator, arguments other than real tensors of its precision, an argument under both
        of its names, lengths that are not integers, a reverse that is not a bool.
    NotImplementedError
        starts with the backend "gpu".

    Notes
    -----
    Per step and state 4 n^2 + 6 n d flops and those of the transition, backward twice that.

    An ensemble is E recurrences of the same sizes in one call: x of shape (T, E, B, d), or (T, 1, B, d) for all
    replicas; transition is then a stack, and the other arrays may have the replicas as a further first axis, w (E, 2,
    n, n), h0 (E, B, n) and so on. Its states are (T, E, B, n). It takes no checkpoint.

    References
    ----------
    Jing et al. Gated orthogonal recurrent units: On learning to forget. Neural Computation 31 (2019).

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> turn = it.Householder.random(8)
    >>> x, w, u, b = torch.randn(20, 5, 3), torch.randn(2, 8, 8), torch.randn(3, 8, 3), torch.zeros(3, 8)
    >>> it.goru(turn, x, w, u, b).shape
    torch.Size([20, 5, 8])

    With both gates open the state becomes phi(W_h h):

    >>> b[0], b[1], h0 = -100, 100, torch.randn(5, 8)
    >>> states = it.goru(turn, 0 * x, w, u, b, h0=h0, activation="identity")
    >>> torch.allclose(states[0], turn.apply(h0), atol=1e-5)
    True
    """
    if not isinstance(transition, Operator):
        check.kind("transition", "an operator of isometry.torch", transition)
    own, u, b = setting(reset), either("u", u, input_weight=input_weight), either("b", b, bias=bias)
    given = {"x": x, "w": w, "u": u, "b": b, "h0": h0, "hidden_bias": None}
    given |= {"activation_bias": activation_bias, "start_state": start_state}
    options = Options(activation, slope, own, lengths, reverse, starts, backend, checkpoint, output)
    return run(GORU, transition, given, options)[0]
