"""The plain recurrent layer: h_t = phi(W h_{t-1} + V x_t + b), with any operator as W, and its VJP through time.

There are two routes. *Factored*: an operator that has kernels for it applies its factors at each step. *Dense*: W is
formed once per call; in backward its cotangent is summed over all steps and pulled back once. The operator decides
(`_step_kernels`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isometry import _ensembles
from isometry._arrays import Array, DType, common, finite, gradient, ready, real_type, taken, taken_integers
from isometry._backend import serve
from isometry._cells.affine import AFFINE
from isometry._routes import Call, by_length, in_order, route_of, unsorted
from isometry._rules import check, check_recurrence
from isometry._starts import marks, starts_served
from isometry._states import checked, ends
from isometry.gpu import _calls, _recurrence
from isometry.operators._operator import Operator

__all__ = ["recurrence", "recurrence_vjp"]

Given = dict[str, Array | None]


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
        The input, shape (T, B, d); of an ensemble (T, E, B, d), or (T, 1, B, d) for all members. Its other arrays may
        have the members as a further first axis: input_weight (E, n, d), h0 (E, B, n), biases (E, n).
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
        Marks, bool (T, B): a sequence begins at step t of column b, from start_state, (B, n) or (n,), zero if None.
        Results are those of separate calls; with `reverse` the one with a column's last step starts from h0.
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
        Starts on the GPU, or of an ensemble.

    Notes
    -----
    Costs T B (cost of W on one vector + 2 n d) operations; memory T B n. An operator is applied by its factors at
    each step if that is cheaper than forming its matrix once. Small members of an ensemble are computed one per
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
    check.choice("output", output, *check_recurrence.OUTPUTS)
    options = Options(activation, slope, activation_on, lengths, reverse, backend, check_finite, starts)
    arrays = {"x": x, "input_weight": input_weight, "h0": h0, "bias": bias, "activation_bias": activation_bias}
    if starts is not None or start_state is not None:
        arrays |= starts_served(start_state, backend)
    if serve(backend) == "gpu" and _calls.resident(*arrays.values(), *_members(transition)):
        check_recurrence.on_the_device(output)
        given = _given(arrays, partial(_calls.single, check_finite=check.flag("check_finite", check_finite)))
        return _recurrence.recurrence(_resident(transition, given, options, {}), given)  # type: ignore[return-value]
    given = _given(arrays, taken)
    call = _prepared(transition, given, options, {})
    last = output == "last"
    if call.members is not None:
        all_states = _ensembles.states(call)
        return _ensembles.last(all_states, given["h0"], lengths, reverse) if last else all_states
    if last and call.place != "gpu":
        found = np.empty(call.shape[1:], call.dtype)
        call.run((None, found, None, None))
        return found if call.order is None else found[np.argsort(call.order)]
    states = np.empty(call.shape, call.dtype)
    call.run(states)
    states = unsorted(states, call.order)
    return ends(states, options.lengths, reverse) if last else states


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
    transition, x, input_weight, h0, bias, activation, activation_bias, slope, activation_on, lengths, reverse, starts,
    start_state, backend
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
    options = Options(activation, slope, activation_on, lengths, reverse, backend, check_finite, starts)
    arrays = {"x": x, "input_weight": input_weight, "h0": h0, "bias": bias, "activation_bias": activation_bias}
    if starts is not None or start_state is not None:
        arrays |= starts_served(start_state, backend)
    if serve(backend) == "gpu" and _calls.resident(*arrays.values(), states, ct, *_members(transition)):
        take = partial(_calls.single, check_finite=check.flag("check_finite", check_finite))
        given = _given(arrays, take)
        states, ct = take("states", states), take("ct", ct)
        results: dict[str, Any] = {"states": states, "ct": ct}
        return _recurrence.recurrence_vjp(_resident(transition, given, options, results), given, **results)
    given = _given(arrays, taken)
    states, ct = taken("states", states), taken("ct", ct)
    call = _prepared(transition, given, options, {"states": states, "ct": ct})
    if call.members is not None:
        return _ensembles.gradients(call, given, states, ct, check_states=check.flag("check_states", check_states))
    route, order, dtype = call.route, call.order, call.dtype
    bars = tuple(None if a is None else np.empty_like(a) for a in call.arrays)
    states, ct = (ready(in_order(a, order), dtype) for a in (states, ct))
    if check.flag("check_states", check_states):
        checked(states, call)
    start_bar = None if call.starts is None or call.starts[1] is None else np.empty_like(call.starts[1])
    call.pull(states, ct, (*bars, start_bar))

    x_bar, weight_bar, h0_bar, bias_bar, activation_bias_bar = bars
    if order is not None:
        back = np.argsort(order)
        columns = ((x_bar, 1), (h0_bar, 0), (start_bar, 0))
        x_bar, h0_bar, start_bar = (None if a is None else a.take(back, axis) for a, axis in columns)
    result = {
        "x": x_bar,
        "input_weight": weight_bar,
        "h0": h0_bar,
        "bias": bias_bar,
        "activation_bias": activation_bias_bar,
        "start_state": start_bar,
    }
    return {"transition": route.pull(), **{name: _own(bar, given.get(name)) for name, bar in result.items()}}


# ---------------------------------------------------------------- arguments


def _members(transition: Operator) -> tuple[Any, ...]:
    """The arrays that an operator holds."""
    return transition._members() if isinstance(transition, Operator) else ()


def _given(arrays: dict[str, Any], take: Callable[[str, Any], Array]) -> Given:
    """The arguments as arrays; the bias of the activation is real."""
    required = ("x", "input_weight")
    given = {name: None if a is None and name not in required else take(name, a) for name, a in arrays.items()}
    own_bias = given["activation_bias"]
    if own_bias is not None:
        check.real("activation_bias", own_bias.dtype.name)
    return given


class Options(NamedTuple):
    """The arguments that are not numeric arrays of the layer."""

    activation: str
    slope: float
    activation_on: str
    lengths: ArrayLike | None
    reverse: bool
    backend: str | None
    check_finite: bool
    starts: ArrayLike | None = None


class _Checked(NamedTuple):
    """The checked arguments of a call."""

    members: int | None  # of an ensemble
    shape: tuple[int, int, int]  # of the states of a member
    dtype: DType  # of the states
    lengths: Array | None
    check_finite: bool


def _checked(transition: Operator, given: Given, options: Options, results: dict[str, Array]) -> _Checked:
    """Check all arguments except the values of arrays; `results` are the states and their cotangent."""
    if not isinstance(transition, Operator):
        check.kind("transition", "an operator (Householder, Cayley, Dense, ...)", transition)
    activation, check_finite = options.activation, check.flag("check_finite", options.check_finite)
    check.flag("reverse", options.reverse)
    check_recurrence.activation(activation, "activation")
    check_recurrence.slope(options.slope)
    shapes = {name: None if a is None else a.shape for name, a in given.items()}
    shapes.pop("start_state", None)
    members = None
    if transition.batch_shape:
        members, shapes = check_recurrence.ensemble(transition.batch_shape, shapes)
    n = check_recurrence.recurrence_transition(transition.shape, ())
    steps, batch, _ = AFFINE.check([shapes[name] for name in AFFINE.names], n)
    check.choice("activation_on", options.activation_on, "all", "input")
    dtype = common(transition.dtype, *given.values())
    check_recurrence.activation_units(
        activation,
        n,
        shapes["activation_bias"],
        complex_=dtype.kind == "c",
        argument="activation_bias",
        features_of="transition",
    )
    for name, a in results.items():
        if members is None:
            check.exact(name, a.shape, (steps, batch, n), "(T, B, n)")
        else:
            check.exact(name, a.shape, (steps, members, batch, n), "(T, E, B, n)")
        check.field_of_result(name, a.dtype.name, dtype.name)
    lengths = None
    if options.lengths is not None:
        lengths = taken_integers("lengths", options.lengths)
        check_recurrence.lengths_shape(lengths.shape, batch)
        check_recurrence.lengths_range(int(lengths.min()), int(lengths.max()), steps)
        lengths = lengths.astype(np.int64)
    return _Checked(members, (steps, batch, n), dtype, lengths, check_finite)


def _resident(transition: Operator, given: Given, options: Options, results: dict[str, Array]) -> _recurrence.Call:
    """The call on the GPU."""
    right = _checked(transition, given, options, results)
    check_recurrence.recurrence_transition(transition.shape, transition.batch_shape)  # no ensemble
    held, on_input = transition._resident(right.dtype, right.check_finite), options.activation_on == "input"
    own = options.activation, float(options.slope), on_input, right.lengths, options.reverse
    return _recurrence.Call(held, right.shape, right.dtype, *own)


def _prepared(transition: Operator, given: Given, options: Options, results: dict[str, Array]) -> Call:
    """Check all arguments and convert them for the extension."""
    right = _checked(transition, given, options, results)
    (steps, batch, n), dtype, place = right.shape, right.dtype, serve(options.backend)
    order, lengths = by_length(right.lengths, steps)
    transition._check_held(right.check_finite)
    if right.check_finite:
        for name, array in (given | results).items():
            finite(name, array)
    dtype = common(dtype, results.get("ct"))
    own, starts = given.get("start_state"), None
    if options.starts is not None or own is not None:
        starts = marks(options.starts, own, right.shape, dtype, order, right.members)
    own_bias = given["activation_bias"]
    own_bias = None if own_bias is None else ready(own_bias, real_type(dtype))
    if right.members is not None and own_bias is not None:
        own_bias = own_bias.reshape(-1, own_bias.shape[-1])
    arguments = _arguments if right.members is None else _ensembles.arguments
    return Call(
        right.members,
        (steps, batch, n),
        dtype,
        order,
        route_of(transition, dtype, steps, batch, place),
        place,
        (*arguments(given, dtype, order, batch), own_bias),
        (options.activation, float(options.slope), (options.activation_on == "input",)),
        lengths,
        options.reverse,
        starts,
    )


def _arguments(given: Given, dtype: DType, order: Array | None, batch: int) -> tuple[Any, ...]:
    """x, input_weight, h0 (B, n) and bias in the form `_core` takes."""
    x, weight, h0, bias = given["x"], given["input_weight"], given["h0"], given["bias"]
    assert x is not None and weight is not None
    if h0 is not None:
        h0 = np.broadcast_to(h0, (batch, h0.shape[-1]))
        h0 = ready(h0 if order is None else h0[order], dtype)
    return ready(in_order(x, order), dtype), ready(weight, dtype), h0, None if bias is None else ready(bias, dtype)


def _own(bar: Array | None, argument: Array | None) -> Array | None:
    return None if bar is None or argument is None else gradient(bar, argument.shape, argument.dtype)
