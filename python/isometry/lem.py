"""The long expressive memory over a whole sequence in one call, and its gradients."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._cells.lem import LEM, setting
from isometry._gradients import gradients
from isometry._sequences import Options, both_parts


def lem(
    x: ArrayLike,
    w: ArrayLike,
    u: ArrayLike,
    b: ArrayLike | None = None,
    *,
    dt: float = 1.0,
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
    r"""All states (y, z) of a long expressive memory (LEM).

    .. math::

        s^{(i)}_t = \sigma(W_i y_{t-1} + U_i x_t + b_i), \quad i = 1, 2, \\
        z_t = (1 - \Delta t \, s^{(1)}_t) * z_{t-1} + \Delta t \, s^{(1)}_t * \tanh(W_z y_{t-1} + U_z x_t + b_z), \\
        y_t = (1 - \Delta t \, s^{(2)}_t) * y_{t-1} + \Delta t \, s^{(2)}_t * \tanh(W_y z_t + U_y x_t + b_y).

    Parameters
    ----------
    x : array_like, shape (T, B, d)
        The input, real.
    w : array_like, shape (4, n, n)
        W_1, W_2, W_z and W_y.
    u : array_like, shape (4, n, d)
        U, in the same order.
    b : array_like, shape (4, n), or None
        b, zero if None.
    dt : float
        The longest step, finite.
    y0, z0 : array_like, shape (B, n) or (n,), optional
        The state before the first step, zero if not given.
    lengths, reverse, starts, start_state, backend, check_finite, output
        As in `cornn`.

    Returns
    -------
    y, z : numpy.ndarray, shape (T, B, n), or (B, n) with output "last"

    Raises
    ------
    ValueError, TypeError, NotImplementedError
        As of `cornn`; a dt that is not finite.

    Notes
    -----
    Ensembles are those of `cornn`, w (E, 4, n, n).

    References
    ----------
    Rusch, Mishra, Erichson, Mahoney. Long expressive memory for sequence modeling. ICLR 2022, arXiv 2110.04744,
    equation 3.

    Examples
    --------
    With closed gates the state is kept:

    >>> import numpy as np, isometry as iso
    >>> x, w, u, b = np.ones((20, 5, 3)), np.zeros((4, 8, 8)), np.zeros((4, 8, 3)), np.zeros((4, 8))
    >>> b[:2] = -100
    >>> y, z = iso.lem(x, w, u, b, y0=np.ones(8))
    >>> y.shape, bool(np.allclose(y, 1)), bool(np.allclose(z, 0))
    ((20, 5, 8), True, True)
    """
    arrays = {"x": x, "w": w, "u": u, "b": b, "y0": y0, "z0": z0, "activation_bias": None}
    law = "tanh", 0.0, setting(dt)
    options = Options(*law, lengths, reverse, starts, start_state, backend, check_finite)
    return both_parts(LEM, arrays, options, output)


def lem_vjp(
    x: ArrayLike,
    w: ArrayLike,
    u: ArrayLike,
    b: ArrayLike | None,
    states: tuple[ArrayLike, ArrayLike],
    ct: tuple[ArrayLike, ArrayLike],
    *,
    dt: float = 1.0,
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
    """Return the gradients of `lem` in its arguments, by backpropagation through time.

    Parameters
    ----------
    x, w, u, b, dt, y0, z0, lengths, reverse, starts, start_state, backend, check_finite
        As given to `lem`.
    states
        The result of `lem`.
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
        As for `lem`, and if states or ct has the wrong shape, or states fail `check_states`.

    Notes
    -----
    Forward runs again for what backward needs of it; backward itself costs about twice as much.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> arrays = np.ones((20, 5, 3)), np.zeros((4, 8, 8)), np.ones((4, 8, 3)), np.zeros((4, 8))
    >>> y, z = iso.lem(*arrays)
    >>> grads = iso.lem_vjp(*arrays, (y, z), (np.ones_like(y), np.zeros_like(z)))
    >>> grads["w"].shape, grads["y0"]
    ((4, 8, 8), None)
    """
    arrays = {"x": x, "w": w, "u": u, "b": b, "y0": y0, "z0": z0, "activation_bias": None}
    law = "tanh", 0.0, setting(dt)
    options = Options(*law, lengths, reverse, starts, start_state, backend, check_finite)
    return gradients(LEM, None, arrays, options, (states, ct, None), check_states)
