"""Whether states are those that a recurrence makes: its first and its last step, recomputed by the same kernel."""

from collections.abc import Callable
from typing import Any

import numpy as np

from isometry import _check_recurrence
from isometry._arrays import Array

#: Entries of a step that are off by more than this part of its largest one are counted ...
_OFF = 1e-2
#: ... and this part of them may be: near a jump of modReLU rounding decides.
_ALLOWED = 1e-2
#: In units of eps of the summands: what is left where they cancel is rounding.
_ROUNDED = 16.0


def checked(states: Array, sequence: tuple[Any, ...], run: Callable[[tuple[Any, ...], Array], None]) -> None:
    """Refuse states (T, B, n) that `run` would not make of the arguments, which come in the order of `_core`.

    A wrong initial state shows in the first step of each sequence; the transition, and lengths, in the last one. Both
    are one step of a recurrence over twice the batch.
    """
    x, weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse = sequence
    steps, batch, n = states.shape
    own = np.arange(batch)
    ends = np.full(batch, steps) if lengths is None else lengths
    first, last, step = (ends - 1, 0 * ends, -1) if reverse else (0 * ends, ends - 1, 1)
    start = np.zeros((batch, n), states.dtype) if h0 is None else h0
    before = np.where((ends > 1)[:, None], states[last - step * (ends > 1), own], start)
    found = np.empty((1, 2 * batch, n), states.dtype)
    inputs = np.concatenate([x[first, own], x[last, own]])[None]
    rest = bias, activation, activation_bias, slope, on_input, None, False
    run((inputs, weight, np.concatenate([start, before]), *rest), found)
    summands = (_largest(before), _largest(x) * _largest(weight) * weight.shape[1], _largest(bias))
    with np.errstate(all="ignore"):  # what is not finite, where that is let through, is not off
        rounding = _ROUNDED * np.finfo(states.dtype).eps * sum(summands)
    for name, given, made in zip(("first", "last"), (first, last), np.split(found[0], 2), strict=True):
        with np.errstate(all="ignore"):
            off = np.abs(states[given, own] - made) > _OFF * _largest(made) + rounding
        if off.sum() > _ALLOWED * off.size:
            _check_recurrence.other_states(name, off.mean(), _left(sequence))


def _largest(a: Array | None) -> float:
    return 0.0 if a is None else float(np.abs(a).max(initial=0.0))


def _left(sequence: tuple[Any, ...]) -> list[str]:
    """The keywords that have their default values."""
    _, _, h0, bias, activation, _, slope, on_input, lengths, reverse = sequence
    left = {
        "h0": h0 is None,
        "bias": bias is None,
        "activation": activation == "tanh",
        "slope": activation == "leaky_relu" and slope == 0.1,
        "activation_on": not on_input,
        "lengths": lengths is None,
        "reverse": not reverse,
    }
    return [name for name, default in left.items() if default]
