"""The mean squared error of sequences of different lengths."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import taken_integers
from isometry._rules import check_recurrence
from isometry._rules import check_tasks as check
from isometry.metrics._pair import pair


def masked_mse(output: ArrayLike, target: ArrayLike, lengths: ArrayLike, *, check_finite: bool = True) -> np.float64:
    """Return the mean squared error over the steps that belong to a sequence.

    The sum of (o - y)^2 over all t < lengths[b], divided by features * sum(lengths).

    Parameters
    ----------
    output
        o, shape (T, B, ...).
    target
        y, of the same shape.
    lengths
        Integers of 1..T, shape (B,).
    check_finite
        Reject NaN and infinity, also past the end of a sequence.

    Returns
    -------
    float64

    Raises
    ------
    ValueError
        If the shapes differ or lengths are out of range, or for NaN or infinity under `check_finite`.
    TypeError
        If one of the arrays is not real, lengths are not integers, or check_finite is not a bool.

    Examples
    --------
    >>> import isometry as iso
    >>> output, target = [[1.0, 5.0], [3.0, 9.0]], [[1.0, 4.0], [1.0, 0.0]]
    >>> float(iso.metrics.masked_mse(output, target, [2, 1]))  # (0 + 4 + 1) / 3
    1.6666666666666667
    """
    o, y = pair(output, target, check_finite)
    check.sequences(y.shape)
    lengths = taken_integers("lengths", lengths)
    check_recurrence.lengths_shape(lengths.shape, y.shape[1])
    check_recurrence.lengths_range(int(lengths.min()), int(lengths.max()), y.shape[0], least=1)
    inside = np.arange(y.shape[0])[:, None] < lengths
    with np.errstate(over="ignore", invalid="ignore"):
        value: np.float64 = np.square(o - y)[inside].mean()
    return value
