"""Marks of the steps before which a sequence begins anew, and the state before these steps."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, read
from isometry._rules import check_recurrence


def taken(starts: ArrayLike, steps: int, batch: int, members: int | None) -> Array:
    """The marks (T, B) as integers, with the members as first axis."""
    given = read("starts", starts)
    check_recurrence.starts(given.dtype.name, given.shape, steps, batch, members)
    found = given.astype(np.int64)
    if members is None:
        return found
    return np.moveaxis(found, 1, 0) if found.ndim == 3 else found[None]


def before(state: Array, batch: int, members: int | None) -> Array:
    """The state before all marks or before each, with an entry for each sequence, and the members as first axis."""
    lead = state.shape[:-2] or (() if members is None else (1,))
    state = np.broadcast_to(state, (*lead, batch, state.shape[-1]))
    return np.moveaxis(state, 1, 0) if len(lead) == 2 else state


def at(state: Array, starts: Any) -> Array:
    """The states that are read of those of all steps."""
    marks = np.asarray(starts)
    marks = marks if marks.ndim == state.ndim - 1 else marks[:, None]
    shape = np.broadcast_shapes(marks.shape, state.shape[:-1])
    return np.broadcast_to(state, (*shape, state.shape[-1]))[np.broadcast_to(marks, shape)]
