"""The coupled oscillatory network over a whole sequence in one call, and its gradients."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._cells.cornn import CORNN, setting
from isometry._gradients import gradients
from isometry._sequences import Options, both_parts


def cornn(
    x: ArrayLike,
    w: ArrayLike,
    u: ArrayLike,
    b: ArrayLike | None = None,
    *,
    dt: float,
    gamma: float,
    epsilon: float,
    y0: ArrayLike | None = None,
    z0: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    reverse: bool = False,
    starts: ArrayLike | None = None,
    start_state: tuple[ArrayLike, ArrayLike] | None = None,
    backend: str | None = None,
    check_finite: bool = True,
    output: Literal["states", "last"] = "states",
) -> tuple[Array, Array]:
    r"""All states (y, z) of a coupled oscillatory network (CoRNN).

    .. math::

        z_t = z_{t-1} + \Delta t \, (\tanh(W_y y_{t-1} + W_z z_{t-1} + U x_t + b)
        - \gamma y_{t-1} - \epsilon z_{t-1}), \qquad
        y_t = y_{t-1} + \Delta t \, z_t.

    Parameters
    ----------
    x : array_like, shape (T, B, d)
        The input, real.
    w : array_like, shape (2, n, n)
        W_y and W_z.
    u : array_like, shape (n, d)
        U.
    b : array_like, shape (n,), or None
        b, zero if None.
    dt, gamma, epsilon : float
        The numbers of the formula, finite.
    y0, z0 : array_like, shape (B, n) or (n,), optional
        The state before the first step, zero if not given.
    lengths : array_like of int, shape (B,), optional
        The length of each sequence, from 0 to T. States past the end are zero.
    reverse : bool
        Whether each sequence is read from its own end; states keep the position of their input.
    starts : array_like of bool, shape (T, B), optional
        Reset mask: where starts[t, b] holds, a sequence begins at step t of column b, from start_state.
    start_state : pair of array_like, (T, B, n), (B, n) or (n,) each, optional
        The state before each marked step, or before all of them, zero if not given.
    backend : {"cpu"}, optional
        Where the kernels run; the GPU has none for this cell.
    check_finite : bool
        Reject NaN and infinity in all arrays.
    output : {"states", "last"}
        "last" returns only the last state of each sequence.

    Returns
    -------
    y, z : numpy.ndarray, shape (T, B, n), or (B, n) with output "last"

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lengths outside 0..T, NaN or infinity.
    TypeError
        Arrays that are not real, lengths that are not integers, a flag that is not a bool.
    NotImplementedError
        The backend "gpu".

    Notes
    -----
    An ensemble is E recurrences of the same sizes in one call: x of shape (T, E, B, d), or (T, 1, B, d) for all
    replicas; the other arrays may have the replicas as a further first axis, w (E, 2, n, n), y0 (E, B, n) and so on.
    Its states are (T, E, B, n).

    References
    ----------
    Rusch, Mishra. Coupled oscillatory recurrent neural network (coRNN). ICLR 2021, arXiv 2010.00951, equation 3.

    Examples
    --------
    Without weights, the oscillators swing at the angular frequency sqrt(gamma), here half a turn:

    >>> import numpy as np, isometry as iso
    >>> x, w, u = np.zeros((1000, 1, 1)), np.zeros((2, 4, 4)), np.zeros((4, 1))
    >>> y, z = iso.cornn(x, w, u, dt=np.pi / 2000, gamma=4.0, epsilon=0.0, y0=np.ones(4))
    >>> y.shape, bool(np.allclose(y[-1], -1, atol=1e-2))
    ((1000, 1, 4), True)
    """
    arrays = {"x": x, "w": w, "u": u, "b": b, "y0": y0, "z0": z0, "activation_bias": None}
    law = "tanh", 0.0, setting(dt, gamma, epsilon)
    options = Options(*law, lengths, reverse, starts, start_state, backend, check_finite)
    return both_parts(CORNN, arrays, options, output)


def cornn_vjp(
    x: ArrayLike,
    w: ArrayLike,
    u: ArrayLike,
    b: ArrayLike | None,
    states: tuple[ArrayLike, ArrayLike],
    ct: tuple[ArrayLike, ArrayLike],
    *,
    dt: float,
    gamma: float,
    epsilon: float,
    y0: ArrayLike | None = None,
    z0: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    reverse: bool = False,
    starts: ArrayLike | None = None,
    start_state: tuple[ArrayLike, ArrayLike] | None = None,
    backend: str | None = None,
    check_finite: bool = True,
    check_states: bool = True,
) -> dict[str, Any]:
    """Return the gradients of `cornn` in its arguments, by backpropagation through time.

    Parameters
    ----------
    x, w, u, b, dt, gamma, epsilon, y0, z0, lengths, reverse, starts, start_state, backend, check_finite
        As given to `cornn`.
    states
        The result of `cornn`.
    ct
        The cotangent of both, a pair.
    check_states : bool
        Reject states that these arguments do not give, as `recurrence_vjp` does.

    Returns
    -------
    dict
        Gradients by argument name, each with the shape and dtype of its argument; None if it was not given.

    Raises
    ------
    ValueError, TypeError, NotImplementedError
        As for `cornn`, and if states or ct has the wrong shape, or states fail `check_states`.

    Notes
    -----
    Forward runs again for what backward needs of it; backward itself costs about twice as much.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> arrays = np.ones((20, 5, 3)), np.zeros((2, 8, 8)), np.ones((8, 3)), np.zeros(8)
    >>> law = {"dt": 0.1, "gamma": 1.0, "epsilon": 1.0}
    >>> y, z = iso.cornn(*arrays, **law)
    >>> grads = iso.cornn_vjp(*arrays, (y, z), (np.ones_like(y), np.zeros_like(z)), **law)
    >>> grads["w"].shape, grads["y0"]
    ((2, 8, 8), None)
    """
    arrays = {"x": x, "w": w, "u": u, "b": b, "y0": y0, "z0": z0, "activation_bias": None}
    law = "tanh", 0.0, setting(dt, gamma, epsilon)
    options = Options(*law, lengths, reverse, starts, start_state, backend, check_finite)
    return gradients(CORNN, None, arrays, options, (states, ct, None), check_states)
