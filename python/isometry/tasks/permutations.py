"""The word problem of the symmetric groups: the product of all permutations of a sequence so far."""

from itertools import permutations as arrangements
from typing import Literal

import numpy as np

from isometry._arrays import Array
from isometry._rules import check
from isometry.operators._random import Seed, generator

LETTERS = {"S2": 2, "S3": 3, "S4": 4, "S5": 5}


def permutations(
    steps: int, batch: int, rng: Seed, *, group: Literal["S2", "S3", "S4", "S5"] = "S3"
) -> tuple[Array, Array]:
    """Draw a batch of the word problem of a symmetric group, by which the state tracking of networks is tested.

    The input is a sequence of permutations p_0, ..., p_{T-1}, drawn uniformly. The target at step t is the product of
    those so far, p_t after ... after p_0. A permutation is given by its number among all of n letters in lexicographic
    order, the order of ``itertools.permutations(range(n))``; 0 is the identity. Uniform guesses have the loss ln n!
    nats.

    Parameters
    ----------
    steps
        T, at least 1.
    batch
        B, at least 1.
    rng
        A `numpy.random.Generator`, or a seed. Draws ``integers(0, n!, (T, B))``.
    group
        "S2", "S3", "S4" or "S5": all permutations of n = 2, 3, 4 or 5 letters.

    Returns
    -------
    ids : numpy.ndarray
        Integers, shape (T, B), n! classes.
    products : numpy.ndarray
        Integers, shape (T, B), the same classes.

    Raises
    ------
    ValueError
        For no steps, an empty batch or another group.
    TypeError
        If steps or batch is not an integer, or rng is neither a generator nor a seed.

    Examples
    --------
    >>> import isometry as iso
    >>> ids, products = iso.tasks.permutations(5, 1, 0)     # 5 is (2, 1, 0), which swaps two letters
    >>> print(*ids[:, 0])
    5 3 3 1 1
    >>> print(*products[:, 0])
    5 1 2 4 2
    """
    check.choice("group", group, *LETTERS)
    steps = check.count("steps", steps, 1)
    batch = check.count("batch", batch, 1)
    elements = np.array(list(arrangements(range(LETTERS[group]))))
    ids = generator(rng).integers(0, len(elements), (steps, batch))
    products = elements[ids]
    for t in range(1, steps):
        products[t] = np.take_along_axis(products[t], products[t - 1], -1)  # (p after q)(i) = p[q[i]]
    # Read as numbers, the rows of `elements` ascend.
    digits = LETTERS[group] ** np.arange(LETTERS[group])[::-1]
    return ids, np.searchsorted(elements @ digits, products @ digits)
