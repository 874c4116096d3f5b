"""Class numbers as indicator vectors."""

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, taken_integers
from isometry._rules import check, check_tasks


def one_hot(ids: ArrayLike, classes: int) -> Array:
    """Return indicator vectors of class numbers.

    Parameters
    ----------
    ids
        Integers of 0..classes-1, any shape (...).
    classes
        The number of classes, at least 1.

    Returns
    -------
    numpy.ndarray
        float64, shape (..., classes): 1 at the class, else 0.

    Raises
    ------
    ValueError
        If a number is out of range.
    TypeError
        If ids or classes are not integers.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.tasks.one_hot([2, 0], 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    ids = taken_integers("ids", ids)
    classes = check.count("classes", classes, 1)
    if ids.min(initial=0) < 0 or ids.max(initial=0) >= classes:
        check_tasks.outside("ids", 0, classes - 1)
    return (ids[..., None] == np.arange(classes)).astype(np.float64)
