"""Whether states belong to the arguments of a call: its first and its last step are recomputed by the same kernel."""

from typing import Any

import numpy as np

from isometry._arrays import Array
from isometry._cells._declaration import START_STATE
from isometry._rules import check_recurrence
from isometry._sequences import Call

#: Entries of a step that are off by more than this part of its largest one are counted ...
_OFF = 1e-2
#: ... and this part of them may be: near a jump of modReLU rounding decides.
_ALLOWED = 1e-2
#: In units of eps of the summands: where they cancel, only rounding is left.
_ROUNDED = 16.0


def checked(states: Array, call: Call) -> None:
    """Refuse states (T, B, width n) that the call would not compute.

    A wrong initial state shows in the first step of each sequence, a wrong transition or wrong lengths in the last.
    Both steps are computed as one step over twice the batch. Before the last step a memory is not known, so only the
    first is.
    """
    if call.members is not None:
        for i in range(call.members):
            checked(states[i], call.member(i))
        return
    arrays, reverse = call.arrays, call.reverse
    lengths: Any = call.lengths
    x: Any = arrays["x"]
    weight: Any = arrays[call.cell.kernel[1 if call.cell.operator else 2]]
    (steps, batch, width), n = states.shape, call.shape[2]
    first, last, before = _steps(steps, batch, lengths, reverse)
    remembers = call.cell.memory(*call.law[2])
    if remembers:
        last = first
    # The two steps side by side: the states they start from, their inputs, and the expected results.
    start = np.zeros((2, batch, width), states.dtype)
    if arrays["h0"] is not None:
        start[:] = arrays["h0"]
    if lengths is None and steps > 1 and not remembers:
        start[1] = states[before]
    elif steps > 1 and not remembers:
        start[1] = np.where((lengths > 1)[:, None], states[before], start[1])
    if call.marks is not None:
        own: Any = arrays[START_STATE]
        own = np.zeros(width) if own is None else own
        for at, (marked, step) in enumerate(_marked(call.marks != 0, last, lengths, reverse)):
            start[at] = np.where(marked[:, None], own[step] if own.ndim == 3 else own, start[at])
    inputs, given, made = np.stack((x[first], x[last])), np.stack((states[first], states[last])), np.empty_like(start)
    both = {"x": inputs.reshape(1, 2 * batch, x.shape[-1]), "h0": start.reshape(2 * batch, width), START_STATE: None}
    if arrays.get("r0") is not None:
        both["r0"] = np.concatenate((arrays["r0"], arrays["r0"]))  # type: ignore[arg-type]
    step = call._replace(shape=(1, 2 * batch, n), arrays=arrays | both, lengths=None, reverse=False, marks=None)
    step.run(made.reshape(1, 2 * batch, width), np.empty((2 * batch, n, n), states.dtype) if remembers else None)
    if lengths is not None:
        given[:, lengths == 0] = made[:, lengths == 0] = 0  # no step at all
    with np.errstate(all="ignore"):  # entries that are not finite do not count as wrong
        gap, bound = np.abs(given - made).reshape(2, -1), _OFF * np.abs(made).reshape(2, -1).max(1)
        if not _wrong(gap, bound).any():
            return
        bias = arrays.get("bias", arrays.get("b"))
        summands = _largest(start), _largest(inputs) * _largest(weight) * weight.shape[-1], _largest(bias)
        bound += _ROUNDED * np.finfo(states.dtype).eps * sum(summands)
    for name, wrong, off in zip(("first", "last"), _wrong(gap, bound), gap > bound[:, None], strict=True):
        if wrong:
            check_recurrence.other_states(name, off.mean(), _left(call))


def _steps(steps: int, batch: int, lengths: Array | None, reverse: bool) -> tuple[Any, Any, Any]:
    """The positions of each sequence's first step, its last, and the one before the last."""
    if lengths is None:
        return (steps - 1, 0, 1) if reverse else (0, steps - 1, steps - 2)
    own = np.arange(batch)
    ends, begins = (lengths - 1, own), (0 * lengths, own)
    return (ends, begins, (begins[0] + (lengths > 1), own)) if reverse else (begins, ends, (lengths - 2, own))


def _marked(marks: Array, last: Any, lengths: Array | None, reverse: bool) -> tuple[tuple[Array, Any], ...]:
    """The sequences whose first step, and whose last step, starts anew, and the step of that mark."""
    if not reverse:
        return (marks[0], 0), (marks[last], last)
    none = np.zeros_like(marks[0])
    after = marks[1] if len(marks) > 1 else none
    return (none, 0), (after if lengths is None else after & (lengths > 1), min(1, len(marks) - 1))


def _wrong(gap: Array, bound: Array) -> Array:
    """Whether too many entries of each step are off."""
    return (gap > bound[:, None]).sum(1) > _ALLOWED * gap.shape[1]


def _largest(a: Array | None) -> float:
    return 0.0 if a is None else float(np.abs(a).max(initial=0.0))


def _left(call: Call) -> list[str]:
    """The keywords that have their default values."""
    activation, slope, settings = call.law
    optional = "h0", "bias", "hidden_bias", "r0"
    left: dict[str, bool] = {name: call.arrays[name] is None for name in optional if name in call.arrays}
    left |= {
        "activation": activation == "tanh",
        "slope": activation == "leaky_relu" and slope == 0.1,
        **{name: not value for name, value in zip(call.cell.settings, settings, strict=True)},
        "lengths": call.lengths is None,
        "reverse": not call.reverse,
    }
    keywords = {"on_input": "activation_on", "after": "reset", "memory": "lam"}
    return [keywords.get(name, name) for name, default in left.items() if default]
