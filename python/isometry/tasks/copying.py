"""The copying problem: remember ten digits over a long sequence of blanks."""

import numpy as np

from isometry._arrays import Array
from isometry._rules import check
from isometry.operators._random import Seed, generator

DIGITS = 10
BLANK, MARKER = 0, 9


def copying(steps: int, batch: int, rng: Seed, *, marker_offset: int = 1) -> tuple[Array, Array]:
    """Draw a batch of the copying problem.

    The input is ten digits of 1..8, then blanks (0) up to length T + 20, with one marker (9) that requests the
    answer. The target is T + 10 blanks, then the digits. Blanks and then uniform guesses have the loss 10 ln 8 / (T +
    20) nats.

    Parameters
    ----------
    steps
        T, the delay, at least 1.
    batch
        B, at least 1.
    rng
        A `numpy.random.Generator`, or a seed. Draws ``integers(1, 9, (10, B))``.
    marker_offset
        1: the marker is one step before the first answer, at step T + 9. 0: at step T + 10.

    Returns
    -------
    ids_in : numpy.ndarray
        Integers, shape (T + 20, B), ten classes.
    ids_out : numpy.ndarray
        Integers, shape (T + 20, B), nine classes.

    Raises
    ------
    ValueError
        For too few steps, an empty batch or another offset.
    TypeError
        If one of these is not an integer, or rng is neither a generator nor a seed.

    Examples
    --------
    >>> import isometry as iso
    >>> ids_in, ids_out = iso.tasks.copying(3, 1, 0)
    >>> print(*ids_in[:, 0])
    7 6 5 3 3 1 1 1 2 7 0 0 9 0 0 0 0 0 0 0 0 0 0
    >>> print(*ids_out[:, 0])
    0 0 0 0 0 0 0 0 0 0 0 0 0 7 6 5 3 3 1 1 1 2 7
    """
    steps = check.count("steps", steps, 1)
    batch = check.count("batch", batch, 1)
    marker_offset = check.within("marker_offset", marker_offset, 0, 1)
    digits = generator(rng).integers(1, 9, (DIGITS, batch))
    ids_in = np.full((steps + 2 * DIGITS, batch), BLANK, np.int64)
    ids_out = ids_in.copy()
    ids_in[:DIGITS] = ids_out[steps + DIGITS :] = digits
    ids_in[steps + DIGITS - marker_offset] = MARKER
    return ids_in, ids_out
