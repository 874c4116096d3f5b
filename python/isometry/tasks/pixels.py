"""Images as sequences of pixels."""

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, all_finite, taken_integers, taken_real
from isometry._rules import check_tasks


def pixels(images: ArrayLike, permutation: ArrayLike | None = None, *, check_finite: bool = True) -> Array:
    """Read images pixel by pixel.

    Parameters
    ----------
    images
        Values 0..255, shape (B, height, width).
    permutation
        Integers, shape (height * width,): step t shows pixel permutation[t] of the row-by-row order.
    check_finite
        Reject NaN and infinity in images.

    Returns
    -------
    numpy.ndarray
        float64, values divided by 255, shape (height * width, B, 1).

    Raises
    ------
    ValueError
        If images does not have three axes, or permutation does not contain each pixel once.
    TypeError
        If images are not real, permutation is not of integers, or check_finite is not a bool.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.tasks.pixels([[[0, 51], [102, 255]]], [3, 2, 1, 0])[:, 0, 0]
    array([1. , 0.4, 0.2, 0. ])
    """
    images = taken_real("images", images)
    check_tasks.images(images.shape)
    all_finite(check_finite, images=images)
    x = images.reshape(len(images), images.shape[1] * images.shape[2]).T
    if permutation is not None:
        order = taken_integers("permutation", permutation)
        if order.shape != (len(x),) or not np.array_equal(np.sort(order), np.arange(len(x))):
            check_tasks.not_permutation(len(x))
        x = x[order]
    return x[..., None].astype(np.float64) / 255
