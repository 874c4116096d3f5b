"""Character prediction: the character k steps ahead."""

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, taken_integers
from isometry._rules import check, check_tasks
from isometry.tasks.one_hot import one_hot


def characters(ids: ArrayLike, k: int, classes: int) -> tuple[Array, Array]:
    """Make inputs and targets of character prediction.

    Step t shows character t and asks for character t + k. Losses in bits per character (cross-entropy / ln 2) have two
    baselines: log2(classes), and the entropy in bits of the frequencies of the targets.

    Parameters
    ----------
    ids
        Class numbers 0..classes-1 of the characters, integers of shape (S, B).
    k
        How many steps ahead, 1..S-1.
    classes
        The number of classes, at least 1.

    Returns
    -------
    x : numpy.ndarray
        float64, shape (S - k, B, classes): indicators of ids[t].
    y : numpy.ndarray
        int64, shape (S - k, B): ids[t + k].

    Raises
    ------
    ValueError
        If ids have another number of axes or lie out of range, or k does.
    TypeError
        If one of the arguments is not of integers.

    Examples
    --------
    >>> import isometry as iso
    >>> x, y = iso.tasks.characters([[0], [2], [1], [2]], 2, 3)
    >>> x[:, 0], y[:, 0]
    (array([[1., 0., 0.],
           [0., 0., 1.]]), array([1, 2]))
    """
    ids = taken_integers("ids", ids)
    check_tasks.ids(ids.shape)
    k = check_tasks.ahead(k, len(ids))
    classes = check.count("classes", classes, 1)
    if ids.min(initial=0) < 0 or ids.max(initial=0) >= classes:
        check_tasks.outside("ids", 0, classes - 1)
    return one_hot(ids[:-k], classes), ids[k:].astype(np.int64)
