"""Marks within sequences, checked and in the form the kernels take."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, DType, ready
from isometry._backend import serve
from isometry._routes import in_order
from isometry._rules import check, check_recurrence
from isometry.operators._operator import Operator


def starts_served(transition: Operator, start_state: ArrayLike | None, backend: str | None) -> dict[str, Any]:
    """The further array of a call with marks; refuses them where there are no kernels for them."""
    stack = isinstance(transition, Operator) and bool(transition.batch_shape)
    check_recurrence.starts_served(gpu=serve(backend) == "gpu", ensemble=stack)
    return {"start_state": start_state}


def marks(
    starts: ArrayLike | None, own: Array | None, shape: tuple[int, int, int], dtype: DType, order: Array | None
) -> tuple[Array, Array | None] | None:
    """The marks and the state before them; None without any."""
    if starts is None and own is None:
        return None
    steps, batch, n = shape
    if own is not None:
        check_recurrence.start_state_shape(own.shape, batch, n)
        own = np.broadcast_to(own, (batch, n))
        own = ready(own if order is None else own[order], dtype)
    try:
        given = np.zeros((steps, batch), bool) if starts is None else np.asarray(starts)
    except (TypeError, ValueError) as error:
        check.unreadable("starts", error)
    check_recurrence.starts(given.dtype.name, given.shape, steps, batch)
    return ready(in_order(given.astype(np.int64), order), np.dtype(np.int64)), own
