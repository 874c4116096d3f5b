"""The rotational unit of memory over a whole sequence in one call, and its gradients."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._cells.rum import RUM, setting
from isometry._gradients import gradients
from isometry._sequences import Given, Options, joined, states_of


def rum(
    x: ArrayLike,
    w: ArrayLike,
    u: ArrayLike,
    b: ArrayLike | None,
    embed_weight: ArrayLike,
    embed_bias: ArrayLike | None,
    *,
    h0: ArrayLike | None = None,
    r0: ArrayLike | None = None,
    lam: int = 0,
    eta: float | None = None,
    activation: str = "relu",
    activation_bias: ArrayLike | None = None,
    slope: float = 0.1,
    lengths: ArrayLike | None = None,
    reverse: bool = False,
    starts: ArrayLike | None = None,
    start_state: ArrayLike | None = None,
    backend: str | None = None,
    check_finite: bool = True,
    output: Literal["states", "last"] = "states",
) -> tuple[Array, Array | None]:
    r"""All states of a rotational unit of memory (RUM), and its associative memory after them.

    .. math::

        (u'_t, \tau_t) = W h_{t-1} + U x_t + b, \qquad u_t = \sigma(u'_t), \qquad e_t = U_e x_t + b_e, \\
        R_t = R_{t-1}^\lambda \, \mathrm{Rotation}(e_t, \tau_t), \qquad k_t = \phi(e_t + R_t h_{t-1}), \\
        h'_t = u_t * h_{t-1} + (1 - u_t) * k_t, \qquad h_t = h'_t \text{ or } \eta \, h'_t / \|h'_t\|.

    Parameters
    ----------
    x : array_like, shape (T, B, d)
        The input, real.
    w : array_like, shape (2n, n)
        W: the rows of u', then those of tau.
    u : array_like, shape (2n, d)
        U, in the same order.
    b : array_like, shape (2n,), or None
        b, zero if None.
    embed_weight : array_like, shape (n, d)
        U_e.
    embed_bias : array_like, shape (n,), or None
        b_e, zero if None.
    h0 : array_like, shape (B, n) or (n,), optional
        The state before the first step, zero if not given.
    r0 : array_like, shape (B, n, n) or (n, n), optional
        The memory before the first step, the identity if not given; with lam = 1 only.
    lam : {0, 1}
        lambda: whether rotations accumulate.
    eta : float, optional
        The length to which states are normalised; not at all if not given.
    activation : str
        phi, a name of `activate`.
    activation_bias : array_like, optional
        The bias of modReLU.
    slope : float
        The slope of "leaky_relu".
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
    states : numpy.ndarray, shape (T, B, n), or (B, n) with output "last"
    r_last : numpy.ndarray, shape (B, n, n), or None
        The memory after the last step of each sequence, with lam = 1.

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lengths outside 0..T, unknown names, NaN or infinity,
        lam not 0 or 1, eta not positive, r0 with lam = 0.
    TypeError
        Arrays that are not real, lengths that are not integers, a flag that is not
        a bool.
    NotImplementedError
        starts with the backend "gpu", or with lam = 1.

    Notes
    -----
    An ensemble is E recurrences of the same sizes in one call: x of shape (T, E, B, d), or (T, 1, B, d) for all
    replicas; the other arrays may have the replicas as a further first axis, w (E, 2n, n), h0 (E, B, n) and so on.
    Its states are (T, E, B, n).

    References
    ----------
    Dangovski, Jing, Nakov, Tatalović, Soljačić. Rotational unit of memory. TACL 2019.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> x, w, u, e = np.ones((20, 5, 3)), np.eye(16, 8), np.ones((16, 3)), np.eye(8, 3)
    >>> states, memory = iso.rum(x, w, u, None, e, None, lam=1, eta=1.0)
    >>> bool(np.allclose(np.linalg.norm(states, axis=-1), 1)), bool(np.allclose(memory[0] @ memory[0].T, np.eye(8)))
    (True, True)
    """
    law = activation, slope, _settings(lam, eta, r0, starts)
    arrays = {"x": x, "w": w, "u": u, "b": b, "embed_weight": embed_weight, "embed_bias": embed_bias, "h0": h0}
    arrays |= {"r0": r0, "activation_bias": activation_bias}
    options = Options(*law, lengths, reverse, starts, start_state, backend, check_finite)
    return states_of(RUM, None, arrays, options, output, _packed)


def rum_vjp(
    x: ArrayLike,
    w: ArrayLike,
    u: ArrayLike,
    b: ArrayLike | None,
    embed_weight: ArrayLike,
    embed_bias: ArrayLike | None,
    states: ArrayLike | tuple[ArrayLike, ArrayLike | None],
    ct: ArrayLike | tuple[ArrayLike, ArrayLike | None],
    *,
    h0: ArrayLike | None = None,
    r0: ArrayLike | None = None,
    lam: int = 0,
    eta: float | None = None,
    activation: str = "relu",
    activation_bias: ArrayLike | None = None,
    slope: float = 0.1,
    lengths: ArrayLike | None = None,
    reverse: bool = False,
    starts: ArrayLike | None = None,
    start_state: ArrayLike | None = None,
    backend: str | None = None,
    check_finite: bool = True,
    check_states: bool = True,
) -> dict[str, Any]:
    """Return the gradients of `rum` in its arguments, by backpropagation through time.

    Parameters
    ----------
    x, w, u, b, embed_weight, embed_bias
        As given to `rum`.
    states
        The result of `rum`, or the states alone: the memory is computed again.
    ct
        The cotangent of the states; with lam = 1 also a pair, of states and memory.
    h0, r0, lam, eta, activation, activation_bias, slope
        As given to `rum`.
    lengths, reverse, starts, start_state, backend, check_finite
        As given to `rum`.
    check_states : bool
        Reject states that these arguments do not give, as `recurrence_vjp` does.

    Returns
    -------
    dict
        Gradients by argument name, each with the shape and dtype of its argument; None if it was not given.

    Raises
    ------
    ValueError, TypeError
        As for `rum`, and if states or ct has the wrong shape, or states fail `check_states`.

    Notes
    -----
    Forward runs again for what backward needs of it; backward itself costs about twice as much.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> arrays = np.ones((20, 5, 3)), np.eye(16, 8), np.ones((16, 3)), None, np.eye(8, 3), None
    >>> states, _ = iso.rum(*arrays)
    >>> grads = iso.rum_vjp(*arrays, states, np.ones_like(states))
    >>> grads["embed_weight"].shape, grads["b"]
    ((8, 3), None)
    """
    law = activation, slope, _settings(lam, eta, r0, starts)
    arrays = {"x": x, "w": w, "u": u, "b": b, "embed_weight": embed_weight, "embed_bias": embed_bias, "h0": h0}
    arrays |= {"r0": r0, "activation_bias": activation_bias}
    options = Options(*law, lengths, reverse, starts, start_state, backend, check_finite)
    states, _ = states if isinstance(states, tuple) else (states, None)
    ct, memory_ct = ct if isinstance(ct, tuple) else (ct, None)
    return gradients(RUM, None, arrays, options, (states, ct, memory_ct), check_states, _packed, _unpacked)


def _packed(arrays: Given) -> Given:
    """The kernel takes U and U_e as one array, and their biases too."""
    weight, own, bias, b = (arrays.pop(name) for name in ("embed_weight", "u", "embed_bias", "b"))
    n = weight.shape[-2]
    if b is not None or bias is not None:
        zero = np.zeros(2 * n, own.dtype)
        b = joined([zero if b is None else b, zero[:n] if bias is None else bias], -1)
    x, w = arrays.pop("x"), arrays.pop("w")
    return {"x": x, "w": w, "u": joined([own, weight], -2), "b": b, **arrays}


def _unpacked(bars: Given) -> Given:
    u, b = bars["u"], bars["b"]
    cut = u.shape[-2] // 3 * 2
    biases = (None, None) if b is None else (b[..., :cut], b[..., cut:])
    return {"u": u[..., :cut, :], "embed_weight": u[..., cut:, :], "b": biases[0], "embed_bias": biases[1]}


def _settings(lam: int, eta: float | None, r0: object, starts: object) -> tuple[bool, float | None]:
    """Whether there is a memory, which takes no marks, and the length of the states."""
    found = setting(lam, eta, r0)
    if found[0] and starts is not None:
        raise NotImplementedError("starts must not be given with lam 1: a memory cannot be reset")
    return found
