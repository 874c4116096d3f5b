"""The plain recurrent layer: h_t = phi(W h_{t-1} + V x_t + b), with any operator as W, and its VJP through time.

There are two routes. *Factored*: an operator that has kernels for it applies its factors at each step. *Dense*: W is
formed once per call; in backward its cotangent is summed over all steps and pulled back once. The core decides, from
the shapes.
"""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from isometry import _blocks
from isometry._arrays import Array
from isometry._cells.recurrence import RECURRENCE
from isometry._rules import check
from isometry._sequences import Options
from isometry.operators._operator import Operator


def recurrence(
    transition: Operator,
    x: ArrayLike,
    input_weight: ArrayLike,
    *,
    h0: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    activation: str = "tanh",
    activation_bias: ArrayLike | None = None,
    slope: float = 0.1,
    activation_on: Literal["all", "input"] = "all",
    lengths: ArrayLike | None = None,
    reverse: bool = False,
    starts: ArrayLike | None = None,
    start_state: ArrayLike | None = None,
    backend: str | None = None,
    check_finite: bool = True,
    output: Literal["states", "last"] = "states",
) -> Array:
    """Run a recurrent layer over a batch of sequences.

    h_t = phi(W h_{t-1} + V x_t + b) for t = 0 .. T-1; with ``activation_on="input"``: h_t = W h_{t-1} + phi(V x_t + b).

    Parameters
    ----------
    transition
        W, one square operator of size n: `Householder`, `Cayley`, `Dense`, ...; or a stack of batch_shape (E,), an
        ensemble: E recurrences of the same sizes in one call.
    x
        The input, shape (T, B, d); of an ensemble (T, E, B, d), or (T, 1, B, d) for all replicas. Its other arrays may
        have the replicas as a further first axis: input_weight (E, n, d), h0 (E, B, n), biases (E, n).
    input_weight
        V, shape (n, d).
    h0
        The initial state, shape (B, n), or (1, n) or (n,) for all sequences; None is zero.
    bias
        b, shape (n,).
    activation
        phi, a name of `activate`.
    activation_bias
        The bias of the modReLU activations: real, shape (n,), or (n/2,) for "modrelu_realrep".
    slope
        Slope of "leaky_relu".
    activation_on
        "all", or "input" for the variant above.
    lengths
        Integers, shape (B,), in 0..T (GPU: 1..T): the length of each sequence, in any order; states past its end are 0.
    reverse
        Run from the end of each sequence (its own end, with `lengths`) to step 0; h0 enters at the last step.
    starts, start_state
        A reset mask, bool (T, B): a sequence begins at step t of column b, from start_state, (B, n) or (n,), zero if
        None; or (T, B, n), a state for each reset, other entries not being read. Results are those of separate calls;
        with `reverse` the one with a column's last step starts from h0, and that of the steps up to t - 1 from
        start_state[t].
    backend
        "cpu" or "gpu"; None: that of `use_backend`.
    check_finite
        Reject NaN and infinity in all arrays. Those that arise during the recurrence propagate.
    output
        "last" returns only the last state of each sequence, h0 for one of length 0, and on the CPU stores no others.

    Returns
    -------
    numpy.ndarray
        The states, shape (T, B, n), or the last ones, shape (B, n); of an ensemble (T, E, B, n) or (E, B, n); complex
        if any of the arguments is.

    Raises
    ------
    ValueError
        If shapes do not fit, T, B or n is 0, a name is unknown, or for NaN or infinity under `check_finite`.
    TypeError
        If transition is not an operator, x or input_weight is None, an array has an unsupported dtype, lengths are
        not integers, starts not bool, or reverse or check_finite is not a bool.
    NotImplementedError
        starts with the backend "gpu".

    Notes
    -----
    Costs T B (cost of W on one vector + 2 n d) operations; memory T B n. An operator is applied by its factors at
    each step if that is cheaper than forming its matrix once. Small replicas of an ensemble are computed one per
    thread, large ones one after another, with the bits of a separate call on the same W (in a stack, W of up to 32
    rows may be rounded otherwise than alone). Ensembles do not take arrays on the GPU.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> quarter_turn = iso.Cayley(np.array([1.0]))
    >>> x = np.zeros((4, 1, 1))
    >>> states = iso.recurrence(quarter_turn, x, np.zeros((2, 1)), h0=[1.0, 0.0], activation="identity")
    >>> states[:, 0].round(12) + 0.0
    array([[ 0.,  1.],
           [-1.,  0.],
           [ 0., -1.],
           [ 1.,  0.]])
    """
    check.choice("activation_on", activation_on, "all", "input")
    law = activation, slope, (activation_on == "input",)
    options = Options(*law, lengths, reverse, starts, start_state, backend, check_finite)
    arrays = {"x": x, "input_weight": input_weight, "h0": h0, "bias": bias, "activation_bias": activation_bias}
    return _blocks.states(RECURRENCE, transition, arrays, options, output)


def recurrence_vjp(
    transition: Operator,
    x: ArrayLike,
    input_weight: ArrayLike,
    states: ArrayLike,
    ct: ArrayLike,
    *,
    h0: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    activation: str = "tanh",
    activation_bias: ArrayLike | None = None,
    slope: float = 0.1,
    activation_on: Literal["all", "input"] = "all",
    lengths: ArrayLike | None = None,
    reverse: bool = False,
    starts: ArrayLike | None = None,
    start_state: ArrayLike | None = None,
    backend: str | None = None,
    check_finite: bool = True,
    check_states: bool = True,
) -> dict[str, Any]:
    """Return the gradients of `recurrence` in its arguments, by backpropagation through time.

    Parameters
    ----------
    transition, x, input_weight, h0, bias, activation, activation_bias, slope, activation_on
        As given to `recurrence`.
    lengths, reverse, starts, start_state, backend
        As given to `recurrence`.
    states
        The result of `recurrence`.
    ct
        The cotangent of the states, of their shape; ignored past the end of a sequence. The cotangent of the last
        state is added to its entry.
    check_finite
        Reject NaN and infinity in all arrays.
    check_states
        Reject states that these arguments do not give. The first and the last step are recomputed; it is a ValueError
        if in either more than 1 % of the entries differ by more than 1e-2 of the step's largest entry. This costs two
        steps.

    Returns
    -------
    dict
        "transition": a dict like that of `Operator.matrix_vjp`; "x", "input_weight", "h0", "bias", "activation_bias",
        "start_state": gradients in the shape and dtype of the argument, None if it was not given.

    Raises
    ------
    ValueError
        As for `recurrence`, and if states or ct has the wrong shape, or states fail `check_states`.
    TypeError
        As for `recurrence`, and if states or ct is complex but the result real.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> op, x, v = iso.Householder(np.array([[1.0], [-1.0]])), np.ones((3, 1, 1)), np.ones((2, 1))
    >>> states = iso.recurrence(op, x, v, activation="identity")
    >>> grads = iso.recurrence_vjp(op, x, v, states, np.ones_like(states), activation="identity")
    >>> grads["input_weight"].round(12), grads["h0"]
    (array([[6.],
           [6.]]), None)
    """
    check.choice("activation_on", activation_on, "all", "input")
    law = activation, slope, (activation_on == "input",)
    options = Options(*law, lengths, reverse, starts, start_state, backend, check_finite)
    arrays = {"x": x, "input_weight": input_weight, "h0": h0, "bias": bias, "activation_bias": activation_bias}
    return _blocks.pulled(RECURRENCE, transition, arrays, options, (states, ct, None), check_states)
