"""The delta rule: a state multiplied by generalised Householder reflections that every token draws anew."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isometry import _core, gpu
from isometry._arrays import INT64, Array, common, finite, gradient, ready, taken_integers, taken_real, writable
from isometry._backend import Place, serve
from isometry._rules import check, check_delta, check_gpu
from isometry.gpu import _calls

_NAMES = ("q", "k", "v", "beta", "g", "initial_state")


def delta_rule(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    beta: ArrayLike,
    *,
    g: ArrayLike | None = None,
    householders: int = 1,
    scale: float | None = None,
    initial_state: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    normalise: bool = False,
    out_state: Array | None = None,
    backend: str | None = None,
    check_finite: bool = True,
) -> tuple[Array, Array]:
    """Apply the delta rule to sequences of keys, values and queries.

    Every head has a state S (K x V). A token multiplies it by its gate, then each of its m = `householders` rows writes
    its value under its key, and the query reads::

        S <- exp(g) S
        S <- (I - beta k k^T) S + beta k v^T
        o  = scale S^T q

    I - beta k k^T is a generalised Householder reflection, orthogonal for beta |k|^2 = 2. DeltaNet has no gate and
    m = 1, Gated DeltaNet a gate per head, DeltaProduct m > 1, Kimi Delta Attention a gate per row of S.

    Parameters
    ----------
    q
        Queries, shape (B, T, H, K), real.
    k
        Keys, shape (B, T m, H, K).
    v
        Values, shape (B, T m, HV, V), HV a multiple of H: value head h reads key head h H / HV.
    beta
        Rates, shape (B, T m, HV).
    g
        Logarithms of the gates: shape (B, T, HV), or (B, T, HV, K) for a gate per row of S; None for no gate.
    householders
        m, the number of rows of a token.
    scale
        The factor of the outputs; None for K^-1/2.
    initial_state
        Shape (B, HV, K, V), or (N, HV, K, V) with `cu_seqlens`; None for zero.
    cu_seqlens
        Integers, shape (N + 1,), ascending from 0 to T, for a batch of 1: the first token of each of N sequences that
        follow each other, and T. Each gets the bits that it would get alone.
    normalise
        Divide q and k by sqrt(|.|^2 + 1e-6) first.
    out_state
        An array for the last states, of their shape and dtype. It may be `initial_state`: the states are then continued
        in place. After an error or ctrl-C its numbers are unspecified.
    backend
        "cpu" or "gpu", as `use_backend` says by default. With "gpu" an `isometry.gpu.Array` may stand in place
        of q, k, v, beta, g or `initial_state`; the results are then of this class.
    check_finite
        Reject NaN and infinity; without it g = -inf forgets everything.

    Returns
    -------
    o : numpy.ndarray or isometry.gpu.Array
        Shape (B, T, HV, V).
    state : numpy.ndarray or isometry.gpu.Array
        The states after the sequences, shape (B, HV, K, V), or (N, HV, K, V): `out_state` or a new array.

    Raises
    ------
    ValueError
        If shapes do not fit, `cu_seqlens` does not ascend from 0 to T, for NaN or infinity under `check_finite`, or if
        `out_state` is not contiguous or shares memory with part of another array.
    TypeError
        If an array is not real, `cu_seqlens` or `householders` is not of integers, or `out_state` is no array of the
        dtype of the result; float64 on the GPU, or `out_state` with an `isometry.gpu.Array`.
    NotImplementedError
        If there is no GPU for the backend "gpu".

    Notes
    -----
    About 6 K V + 128 (K + V) operations per row and value head, in chunks of 64 rows; up to 8 rows are computed one by
    one. Threads share pairs of a sequence and a head; where that leaves threads idle, they share the chunks and the
    columns of V of every head. Decays below e^-87 (e^-708 in double precision) are 0.
    Outputs do not depend on later tokens, even on NaN; on the GPU NaN reaches all outputs of its chunk.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> q = k = np.eye(2)[None, :, None]                  # (1, 2, 1, 2): two tokens, the keys e_0 and e_1
    >>> v = np.array([3.0, 5.0]).reshape(1, 2, 1, 1)
    >>> o, state = iso.delta_rule(q, k, v, np.ones((1, 2, 1)), scale=1.0)
    >>> o.ravel(), state.ravel()
    (array([3., 5.]), array([3., 5.]))
    """
    place = serve(backend)
    given = {"q": q, "k": k, "v": v, "beta": beta, "g": g, "initial_state": initial_state}
    arrays = _taken(given, check_finite)
    options = cu_seqlens, householders, scale, normalise, check_finite
    call, (out, states) = _prepared(arrays, options, common(*arrays.values()), place)
    inputs, *rest = call
    dtype, initial = inputs[0].dtype, inputs[5]
    resident = place == "gpu" and _calls.resident(*inputs)
    if resident and out_state is not None:
        check_gpu.unchanged("out_state")
    room: Any = gpu.Array.room if resident else np.empty
    o = room(out, dtype)
    state = room(states, dtype) if out_state is None else writable("out_state", out_state, states, dtype)
    continued = out_state is not None and initial is not None and initial.ctypes.data == state.ctypes.data
    if continued and place == "gpu":  # which does not compute in place
        inputs, continued = (*inputs[:5], initial.copy()), False
    if continued:
        inputs = (*inputs[:5], None)
    _core.delta_rule((inputs, *rest), (o, state, None, continued), place)
    return o, state


def delta_rule_vjp(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    beta: ArrayLike,
    o_bar: ArrayLike,
    state_bar: ArrayLike,
    *,
    g: ArrayLike | None = None,
    householders: int = 1,
    scale: float | None = None,
    initial_state: ArrayLike | None = None,
    cu_seqlens: ArrayLike | None = None,
    normalise: bool = False,
    backend: str | None = None,
    check_finite: bool = True,
) -> dict[str, Array | None]:
    """Return the gradients of `delta_rule` in its arguments, from the gradients in its results.

    Parameters
    ----------
    q, k, v, beta, g, householders, scale, initial_state, cu_seqlens, normalise, backend
        As given to `delta_rule`.
    o_bar
        The cotangent of the outputs, shape (B, T, HV, V).
    state_bar
        The cotangent of the last states, shape (B, HV, K, V), or (N, HV, K, V).
    check_finite
        Reject NaN and infinity in all arrays.

    Returns
    -------
    dict
        "q", "k", "v", "beta", "g", "initial_state": gradients in the shape and dtype of the argument, None if it was
        not given.

    Raises
    ------
    ValueError
        As for `delta_rule`, and if a cotangent has the wrong shape.
    TypeError, NotImplementedError
        As for `delta_rule`.

    Notes
    -----
    The forward pass is computed again, and one state per 64 rows is kept.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> one = np.ones((1, 1, 1, 1))
    >>> grads = iso.delta_rule_vjp(one, one, 3 * one, one[0], one, 0 * one, scale=1.0)
    >>> grads["q"].item(), grads["v"].item(), grads["g"]
    (3.0, 1.0, None)
    """
    place = serve(backend)
    given = {"q": q, "k": k, "v": v, "beta": beta, "g": g, "initial_state": initial_state}
    arrays = _taken(given | {"o_bar": o_bar, "state_bar": state_bar}, check_finite)
    own = {name: arrays[name] for name in _NAMES}
    dtype, options = common(*arrays.values()), (cu_seqlens, householders, scale, normalise, check_finite)
    call, (out, states) = _prepared(own, options, dtype, place)
    cts = []
    for name, shape, form in (("o_bar", out, "(B, T, HV, V)"), ("state_bar", states, "(N, HV, K, V)")):
        ct = arrays[name]
        check.exact(name, ct.shape, shape, form)
        cts.append(ready(ct, dtype))
    inputs = call[0]
    empty: Any = gpu.Array.like if place == "gpu" and _calls.resident(*arrays.values()) else np.empty_like
    bars = tuple(None if a is None else empty(a) for a in inputs)
    saved = None
    if place != "gpu":  # which computes the states itself
        saved = np.empty(check_delta.saved(out, states[2], call[2]), dtype)
        _core.delta_rule(call, (np.empty(out, dtype), np.empty(states, dtype), saved, False), place)
    _core.delta_rule_vjp(call, saved, (cts[0], cts[1]), bars, place)
    return {
        name: None if a is None or bar is None else gradient(bar, a.shape, a.dtype)
        for (name, a), bar in zip(own.items(), bars, strict=True)
    }


def _taken(given: dict[str, Any], check_finite: bool) -> dict[str, Any]:
    """The arguments as real arrays."""
    optional, check_finite = ("g", "initial_state"), check.flag("check_finite", check_finite)
    if _calls.resident(*given.values()):
        given = {name: _calls.single(x) for name, x in given.items()}
    arrays = {name: None if x is None and name in optional else taken_real(name, x) for name, x in given.items()}
    if check_finite:
        for name, a in arrays.items():
            finite(name, a)
    return arrays


def _prepared(arrays: dict[str, Array | None], options: Any, dtype: np.dtype[Any], place: Place) -> tuple[Any, Any]:
    """The call as the extension takes it, and the shapes of outputs and states."""
    if place == "gpu":
        _calls.fits(dtype, **arrays)
    cu_seqlens, householders, scale, normalise, check_finite = options
    householders, normalise = check.count("householders", householders, 1), check.flag("normalise", normalise)
    ends = None if cu_seqlens is None else taken_integers("cu_seqlens", cu_seqlens)
    count = None if ends is None else check_delta.ends_shape(ends.shape)
    shapes = tuple([None if a is None else a.shape for a in arrays.values()])
    out, states = check_delta.known(shapes, householders, count)
    if ends is not None:
        check_delta.ends_values(ends.tolist(), out[1])
        ends = ready(ends, INT64)
    inputs = tuple(None if a is None else ready(a, dtype) for a in arrays.values())
    factor = check_delta.factor(scale, states[2], check_finite)
    return (inputs, ends, householders, factor, normalise), (out, states)
