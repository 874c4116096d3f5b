"""The adding problem: the sum of the two marked numbers of a sequence."""

from typing import Literal

import numpy as np

from isometry._arrays import Array
from isometry._rules import check
from isometry.operators._random import Seed, generator


def adding(
    steps: int, batch: int, rng: Seed, *, variant: Literal["halves", "half_open"] = "halves"
) -> tuple[Array, Array]:
    """Draw a batch of the adding problem.

    Each step of a sequence holds a number uniform on [0, 1) and a mark, which is 1 at two steps i < j. The target is
    the sum of the two marked numbers. The constant answer 1 has the expected squared error 1/6.

    Parameters
    ----------
    steps
        T, at least 2, or 3 for "half_open".
    batch
        B, at least 1.
    rng
        A `numpy.random.Generator`, or a seed. Draws in this order: ``random((T, B))``, ``integers`` for i, then for j.
    variant
        "halves" (Mhammedi et al. 2017): i in 0..floor(T/2)-1, j in floor(T/2)..T-1.
        "half_open" (Helfrich et al. 2018): i in 1..ceil(T/2)-1, j in ceil(T/2)..T-1.

    Returns
    -------
    x : numpy.ndarray
        Shape (T, B, 2): number and mark.
    y : numpy.ndarray
        Shape (B, 1).

    Raises
    ------
    ValueError
        For too few steps, an empty batch or an unknown variant.
    TypeError
        If steps or batch is not an integer, or rng is neither a generator nor a seed.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> x, y = iso.tasks.adding(50, 3, 0)
    >>> x.shape, np.allclose((x[..., 0] * x[..., 1]).sum(0), y[:, 0])
    ((50, 3, 2), True)
    """
    check.choice("variant", variant, "halves", "half_open")
    steps = check.count("steps", steps, 2 if variant == "halves" else 3)
    batch = check.count("batch", batch, 1)
    first, half = (0, steps // 2) if variant == "halves" else (1, -(-steps // 2))
    rng = generator(rng)
    values = rng.random((steps, batch))
    i, j = rng.integers(first, half, batch), rng.integers(half, steps, batch)
    column = np.arange(batch)
    x = np.zeros((steps, batch, 2))
    x[..., 0] = values
    x[i, column, 1] = x[j, column, 1] = 1.0
    return x, (x[i, column, 0] + x[j, column, 0])[:, None]
