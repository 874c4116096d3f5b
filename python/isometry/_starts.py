"""Marks within sequences, checked and in the form the kernels take."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, DType, ready
from isometry._backend import serve
from isometry._rules import check, check_recurrence


def starts_served(start_state: ArrayLike | None, backend: str | None) -> dict[str, Any]:
    """The further array of a call with marks; refuses them where there are no kernels for them."""
    check_recurrence.starts_served(gpu=serve(backend) == "gpu")
    return {"start_state": start_state}


def marks(
    starts: ArrayLike | None,
    own: Array | None,
    shape: tuple[int, int, int],
    dtype: DType,
    order: Array | None,
    members: int | None = None,
) -> tuple[Array, Array | None] | None:
    """The marks (T, B) and the state (B, n) before them, with an axis of members in front for an ensemble; None without
    any.
    """
    if starts is None and own is None:
        return None
    steps, batch, n = shape
    if own is not None:
        check_recurrence.start_state_shape(own.shape, batch, n, members)
        lead = () if members is None else own.shape[: own.ndim - 2] or (1,)
        own = np.broadcast_to(own, (*lead, batch, n))
        own = ready(own if order is None else own.take(order, -2), dtype)
    try:
        given = np.zeros((steps, batch), bool) if starts is None else np.asarray(starts)
    except (TypeError, ValueError) as error:
        check.unreadable("starts", error)
    check_recurrence.starts(given.dtype.name, given.shape, steps, batch, members)
    found = given.astype(np.int64)
    if members is not None:
        found = np.moveaxis(found, 1, 0) if found.ndim == 3 else found[None]
    return ready(found if order is None else found.take(order, -1), np.dtype(np.int64)), own
