"""The LSTM over a whole sequence in one call, and its gradients."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._cells.lstm import LSTM
from isometry._gradients import gradients
from isometry._sequences import Given, Options, both_parts


def lstm(
    x: ArrayLike,
    w: ArrayLike,
    u: ArrayLike,
    b: ArrayLike | None = None,
    *,
    h0: ArrayLike | None = None,
    c0: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    reverse: bool = False,
    starts: ArrayLike | None = None,
    start_state: tuple[ArrayLike, ArrayLike] | None = None,
    backend: str | None = None,
    check_finite: bool = True,
    output: Literal["states", "last"] = "states",
) -> tuple[Array, Array]:
    r"""All states (h, c) of an LSTM.

    .. math::

        (i'_t, f'_t, g'_t, o'_t) = W h_{t-1} + U x_t + b, \qquad
        i, f, o = \sigma(i', f', o'), \qquad g = \tanh(g'), \\
        c_t = f_t * c_{t-1} + i_t * g_t, \qquad h_t = o_t * \tanh(c_t).

    Parameters
    ----------
    x : array_like, shape (T, B, d)
        The input, real.
    w : array_like, shape (4, n, n)
        W_i, W_f, W_g and W_o.
    u : array_like, shape (4, n, d)
        U, in the same order.
    b : array_like, shape (4, n), or None
        b, zero if None.
    h0, c0 : array_like, shape (B, n) or (n,), optional
        The state before the first step, zero if not given.
    lengths : array_like of int, shape (B,), optional
        The length of each sequence, from 0 to T. States past the end are zero.
    reverse : bool
        Whether each sequence is read from its own end; states keep the position of their input.
    starts : array_like of bool, shape (T, B), optional
        Reset mask: where starts[t, b] holds, a sequence begins at step t of column b, from start_state.
    start_state : pair of array_like, (B, n) or (n,) each, optional
        The state before a marked step, zero if not given.
    backend : {"cpu", "gpu"}, optional
        Where the kernels run; by default as `use_backend` says. The GPU takes float32 and no starts.
    check_finite : bool
        Reject NaN and infinity in all arrays.
    output : {"states", "last"}
        "last" returns only the last state of each sequence.

    Returns
    -------
    h, c : numpy.ndarray, shape (T, B, n), or (B, n) with output "last"

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lengths outside 0..T, unknown names, NaN or infinity.
    TypeError
        Arrays that are not real, lengths that are not integers, a flag that is not
        a bool.
    NotImplementedError
        starts with the backend "gpu".

    Notes
    -----
    An ensemble is E recurrences of the same sizes in one call: x of shape (T, E, B, d), or (T, 1, B, d) for all
    replicas; the other arrays may have the replicas as a further first axis, w (E, 4, n, n), h0 (E, B, n) and so on.
    Its states are (T, E, B, n).

    References
    ----------
    Hochreiter, Schmidhuber. Long short-term memory. Neural Computation 1997.

    Examples
    --------
    With open forget gates and closed input gates c is kept:

    >>> import numpy as np, isometry as iso
    >>> x, w, u, b = np.ones((20, 5, 3)), np.zeros((4, 8, 8)), np.zeros((4, 8, 3)), np.zeros((4, 8))
    >>> b[0], b[1] = -100, 100
    >>> h, c = iso.lstm(x, w, u, b, c0=np.ones(8))
    >>> h.shape, bool(np.allclose(c, 1))
    ((20, 5, 8), True)
    """
    arrays = {"x": x, "w": w, "u": u, "b": b, "h0": h0, "c0": c0, "activation_bias": None}
    options = Options("tanh", 0.0, (), lengths, reverse, starts, start_state, backend, check_finite)
    return both_parts(LSTM, arrays, options, output, _packed)


def lstm_vjp(
    x: ArrayLike,
    w: ArrayLike,
    u: ArrayLike,
    b: ArrayLike | None,
    states: tuple[ArrayLike, ArrayLike],
    ct: tuple[ArrayLike, ArrayLike],
    *,
    h0: ArrayLike | None = None,
    c0: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    reverse: bool = False,
    starts: ArrayLike | None = None,
    start_state: tuple[ArrayLike, ArrayLike] | None = None,
    backend: str | None = None,
    check_finite: bool = True,
    check_states: bool = True,
) -> dict[str, Any]:
    """Return the gradients of `lstm` in its arguments, by backpropagation through time.

    Parameters
    ----------
    x, w, u, b
        As given to `lstm`.
    states
        The result of `lstm`.
    ct
        The cotangent of both, a pair.
    h0, c0, lengths, reverse, starts, start_state, backend, check_finite
        As given to `lstm`.
    check_states : bool
        Reject states that these arguments do not give, as `recurrence_vjp` does.

    Returns
    -------
    dict
        Gradients by argument name, each with the shape and dtype of its argument; None if it was not given.

    Raises
    ------
    ValueError, TypeError
        As for `lstm`, and if states or ct has the wrong shape, or states fail `check_states`.

    Notes
    -----
    Forward runs again for what backward needs of it; backward itself costs about twice as much.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> arrays = np.ones((20, 5, 3)), np.zeros((4, 8, 8)), np.ones((4, 8, 3)), np.zeros((4, 8))
    >>> h, c = iso.lstm(*arrays)
    >>> grads = iso.lstm_vjp(*arrays, (h, c), (np.ones_like(h), np.zeros_like(c)))
    >>> grads["w"].shape, grads["c0"]
    ((4, 8, 8), None)
    """
    arrays = {"x": x, "w": w, "u": u, "b": b, "h0": h0, "c0": c0, "activation_bias": None}
    options = Options("tanh", 0.0, (), lengths, reverse, starts, start_state, backend, check_finite)
    return gradients(LSTM, None, arrays, options, (states, ct, None), check_states, _packed, _unpacked)


def _packed(arrays: Given) -> Given:
    """The kernel takes the rows of all gates in one matrix."""
    w, u, b = arrays["w"], arrays["u"], arrays["b"]
    rows: Given = {name: a.reshape(*a.shape[:-3], 4 * a.shape[-2], a.shape[-1]) for name, a in (("w", w), ("u", u))}
    return arrays | rows | {"b": None if b is None else b.reshape(*b.shape[:-2], -1)}


def _unpacked(bars: Given) -> Given:
    w, u, b = bars["w"], bars["u"], bars["b"]
    rows: Given = {name: a.reshape(*a.shape[:-2], 4, w.shape[-1], a.shape[-1]) for name, a in (("w", w), ("u", u))}
    return rows | {"b": None if b is None else b.reshape(*b.shape[:-1], 4, -1)}
