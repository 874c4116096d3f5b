"""The gated recurrent unit over a whole sequence in one call, and its gradients."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._cells.gru import GRU, setting
from isometry._gradients import gradients
from isometry._sequences import Options, states_of


def gru(
    x: ArrayLike,
    w: ArrayLike,
    u: ArrayLike,
    b: ArrayLike | None = None,
    *,
    h0: ArrayLike | None = None,
    reset: Literal["before", "after"] = "before",
    activation: str = "tanh",
    activation_bias: ArrayLike | None = None,
    hidden_bias: ArrayLike | None = None,
    slope: float = 0.1,
    lengths: ArrayLike | None = None,
    reverse: bool = False,
    starts: ArrayLike | None = None,
    start_state: ArrayLike | None = None,
    backend: str | None = None,
    check_finite: bool = True,
    output: Literal["states", "last"] = "states",
) -> Array:
    r"""All states of a gated recurrent unit (GRU).

    .. math::

        z_t = \sigma(W_z h_{t-1} + U_z x_t + b_z), \qquad r_t = \sigma(W_r h_{t-1} + U_r x_t + b_r), \\
        h_t = z_t * h_{t-1} + (1 - z_t) * c_t,

    with :math:`c_t = \phi(W_h (r_t * h_{t-1}) + U_h x_t + b_h)`, or with reset "after"
    :math:`c_t = \phi(r_t * (W_h h_{t-1} + c_h) + U_h x_t + b_h)`.

    Parameters
    ----------
    x : array_like, shape (T, B, d)
        The input, real.
    w : array_like, shape (3, n, n)
        W_z, W_r and W_h.
    u : array_like, shape (3, n, d)
        U_z, U_r and U_h.
    b : array_like, shape (3, n), or None
        b_z, b_r and b_h, zero if None.
    h0 : array_like, shape (B, n) or (n,), optional
        The state before the first step, zero if not given.
    reset : {"before", "after"}
        Whether r acts on the state before W_h, or on the product after it.
    activation : str
        phi, a name of `activate`.
    activation_bias : array_like, optional
        The bias of modReLU.
    slope : float
        The slope of "leaky_relu".
    hidden_bias : array_like, shape (n,), optional
        c_h, with reset "after" only.
    lengths : array_like of int, shape (B,), optional
        The length of each sequence, from 0 to T. States past the end are zero.
    reverse : bool
        Whether each sequence is read from its own end; states keep the position of their input.
    starts : array_like of bool, shape (T, B), optional
        Reset mask: where starts[t, b] holds, a sequence begins at step t of column b, from start_state.
    start_state : array_like, shape (T, B, n), (B, n) or (n,), optional
        The state before each marked step, entries of other steps not being read, or before all of them; zero if not
        given. With `reverse` start_state[t] is before the steps up to t - 1.
    backend : {"cpu", "gpu"}, optional
        Where the kernels run; by default as `use_backend` says. The GPU takes float32 and no starts.
    check_finite : bool
        Reject NaN and infinity in all arrays.
    output : {"states", "last"}
        "last" returns only the last state of each sequence.

    Returns
    -------
    numpy.ndarray, shape (T, B, n), or (B, n) with output "last"

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lengths outside 0..T, unknown names, NaN or infinity,
        a hidden_bias with reset "before".
    TypeError
        Arrays that are not real, lengths that are not integers, a flag that is not
        a bool.
    NotImplementedError
        starts with the backend "gpu".

    Notes
    -----
    An ensemble is E recurrences of the same sizes in one call: x of shape (T, E, B, d), or (T, 1, B, d) for all
    replicas; the other arrays may have the replicas as a further first axis, w (E, 3, n, n), h0 (E, B, n) and so on.
    Its states are (T, E, B, n).

    References
    ----------
    Cho et al. Learning phrase representations using RNN encoder-decoder for statistical machine translation.
    EMNLP 2014.

    Examples
    --------
    With b_z large the state is kept:

    >>> import numpy as np, isometry as iso
    >>> x, w, u, b = np.ones((20, 5, 3)), np.zeros((3, 8, 8)), np.ones((3, 8, 3)), np.zeros((3, 8))
    >>> b[0] = 100
    >>> states = iso.gru(x, w, u, b, h0=np.ones(8))
    >>> states.shape, bool(np.allclose(states, 1))
    ((20, 5, 8), True)
    """
    own = setting(reset, hidden_bias)
    arrays = {"x": x, "w": w, "u": u, "b": b, "h0": h0, "hidden_bias": hidden_bias, "activation_bias": activation_bias}
    options = Options(activation, slope, own, lengths, reverse, starts, start_state, backend, check_finite)
    return states_of(GRU, None, arrays, options, output)[0]


def gru_vjp(
    x: ArrayLike,
    w: ArrayLike,
    u: ArrayLike,
    b: ArrayLike | None,
    states: ArrayLike,
    ct: ArrayLike,
    *,
    h0: ArrayLike | None = None,
    reset: Literal["before", "after"] = "before",
    activation: str = "tanh",
    activation_bias: ArrayLike | None = None,
    hidden_bias: ArrayLike | None = None,
    slope: float = 0.1,
    lengths: ArrayLike | None = None,
    reverse: bool = False,
    starts: ArrayLike | None = None,
    start_state: ArrayLike | None = None,
    backend: str | None = None,
    check_finite: bool = True,
    check_states: bool = True,
) -> dict[str, Any]:
    """Return the gradients of `gru` in its arguments, by backpropagation through time.

    Parameters
    ----------
    x, w, u, b
        As given to `gru`.
    states
        The result of `gru`.
    ct
        The cotangent of the states.
    h0, reset, activation, activation_bias, hidden_bias, slope
        As given to `gru`.
    lengths, reverse, starts, start_state, backend, check_finite
        As given to `gru`.
    check_states : bool
        Reject states that these arguments do not give, as `recurrence_vjp` does.

    Returns
    -------
    dict
        Gradients by argument name, each with the shape and dtype of its argument; None if it was not given.

    Raises
    ------
    ValueError, TypeError
        As for `gru`, and if states or ct has the wrong shape, or states fail `check_states`.

    Notes
    -----
    Forward runs again for what backward needs of it; backward itself costs about twice as much.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> arrays = np.ones((20, 5, 3)), np.zeros((3, 8, 8)), np.ones((3, 8, 3)), np.zeros((3, 8))
    >>> states = iso.gru(*arrays)
    >>> grads = iso.gru_vjp(*arrays, states, np.ones_like(states))
    >>> grads["w"].shape, grads["h0"]
    ((3, 8, 8), None)
    """
    own = setting(reset, hidden_bias)
    arrays = {"x": x, "w": w, "u": u, "b": b, "h0": h0, "hidden_bias": hidden_bias, "activation_bias": activation_bias}
    options = Options(activation, slope, own, lengths, reverse, starts, start_state, backend, check_finite)
    return gradients(GRU, None, arrays, options, (states, ct, None), check_states)
