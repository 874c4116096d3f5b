"""The mean squared error in units of the target's variance or power."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from isometry._rules import check, check_tasks
from isometry.metrics._pair import pair


def nmse(
    output: ArrayLike,
    target: ArrayLike,
    *,
    normaliser: Literal["variance", "power"] = "variance",
    check_finite: bool = True,
) -> np.float64:
    """Return the normalised mean squared error.

    mean (o - y)^2 / mean (y - mean y)^2, over all entries. The constant answer mean y has the error 1.

    Parameters
    ----------
    output
        o, any shape with at least one entry.
    target
        y, of the same shape.
    normaliser
        "variance", or "power": divided by mean y^2 instead.
    check_finite
        Reject NaN and infinity.

    Returns
    -------
    float64

    Raises
    ------
    ValueError
        If the shapes differ, the normaliser is unknown or zero (a constant target), or for NaN or infinity under
        `check_finite`.
    TypeError
        If one of the arrays is not real, or check_finite is not a bool.

    Examples
    --------
    >>> import isometry as iso
    >>> float(iso.metrics.nmse([1.0, 2.0, 4.0], [1.0, 2.0, 3.0]))
    0.5
    """
    check.choice("normaliser", normaliser, "variance", "power")
    o, y = pair(output, target, check_finite)
    # Compared exactly: the variance of equal entries may be a rounding error instead of 0.
    if (y == (y.flat[0] if normaliser == "variance" else 0)).all():
        check_tasks.without_scale(normaliser)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = y.mean() if normaliser == "variance" else 0.0
        unit = np.abs(y - centre).max()  # squares of differences in this unit neither overflow nor vanish
        value: np.float64 = np.square((o - y) / unit).mean() / np.square((y - centre) / unit).mean()
    return value
