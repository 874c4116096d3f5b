"""Indexing a stack of operators: from a key of its batch axes to one for each array, or operator, that it is made of.

Keys mean what they mean for the batch axes of `matrix()`. An array with fewer batch axes than the stack, or with size 1
where the stack has more, stays broadcast: a key leaves it unchanged along that axis.
"""

from collections.abc import Callable
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isometry._rules import check_expression
from isometry._rules.check import Shape
from isometry._rules.masks import unmasked

Indices = NDArray[np.intp]


class Key(NamedTuple):
    """A key, brought to one entry per batch axis, and None for every new axis."""

    batch: Shape  #: of the stack
    entries: tuple[Any, ...]  #: int, slice, None, or Indices of `rank` axes; with any Indices there is no int
    rank: int  #: axes of the index arrays, 0 if there are none


def parsed(key: Any, batch: Shape) -> Key:
    """The key of a stack of this batch shape; IndexError where it does not fit."""
    parts = [_part(part) for part in (key if isinstance(key, tuple) else (key,))]
    taken = sum(_axes(part) for part in parts)
    if taken > len(batch):
        check_expression.too_many(taken, batch)
    open_ = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(open_) > 1:
        check_expression.two_ellipses()
    at = open_[0] if open_ else len(parts)
    parts[at : at + 1] = [slice(None)] * (len(batch) - taken)
    entries: list[Any] = []
    axis = 0
    for part in parts:
        sizes = batch[axis : axis + _axes(part)]
        if isinstance(part, np.ndarray) and part.dtype == bool:
            check_expression.mask(part.shape, sizes)
            entries.extend(part.nonzero())
        else:
            if isinstance(part, int):
                check_expression.bounds(part, part, axis, sizes[0])
            elif isinstance(part, np.ndarray) and part.size:
                check_expression.bounds(int(part.min()), int(part.max()), axis, sizes[0])
            entries.append(part)
        axis += len(sizes)
    shapes = [e.shape for e in entries if isinstance(e, np.ndarray)]
    if not shapes:
        return Key(batch, tuple(entries), 0)
    try:
        rank = len(np.broadcast_shapes(*shapes))
    except ValueError:
        check_expression.index_arrays(shapes)
    # Beside an array, NumPy treats an integer as an array too when it places the indexed axes.
    wide = (e if e is None or isinstance(e, slice) else np.array(e, np.intp, ndmin=rank) for e in entries)
    return Key(batch, tuple(wide), rank)


def _part(part: Any) -> Any:
    """One part of a key as Python's int, a slice, None, ..., or an array of integers or bool with axes."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, (bool, np.bool_)):
        check_expression.key(part)
    if not isinstance(part, list) and not getattr(part, "ndim", 0):
        try:
            return index(part)
        except TypeError:
            check_expression.key(part)
    unmasked("an index", part)
    a = np.asarray(part.cpu() if hasattr(part, "cpu") else part)
    if not a.size and isinstance(part, list):
        a = a.astype(np.intp)
    if a.dtype.kind not in "biu" or not a.ndim:
        check_expression.key(part)
    return a


def _axes(part: Any) -> int:
    """The number of batch axes that a part of a key indexes."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1


def picked(thing: Any, own: Shape, key: Key, convert: Callable[[Indices], Any] = np.asarray) -> Any:
    """What the key takes from an array or operator of the stack whose own batch shape is `own`."""
    if not own:
        return thing
    lead = len(key.batch) - len(own)
    sizes = (1,) * lead + own
    made: list[Any] = []
    axis = 0
    for entry in key.entries:
        if entry is not None:
            if axis < lead or (sizes[axis] == 1 and key.batch[axis] != 1):
                whole = 0 if isinstance(entry, int) else slice(None)
                # an array takes the only entry of a broadcast axis
                entry = whole if isinstance(entry, (int, slice)) else np.zeros((1,) * key.rank, np.intp)
            axis += 1
        made.append(convert(entry) if isinstance(entry, np.ndarray) else entry)
    if not lead:
        return thing[(*made, ...)]
    taken = thing[(None,) * lead][(*made, ...)]
    # Leading axes of size 1 are dropped, since broadcasting restores them.
    axes = sum(e is None or isinstance(e, slice) for e in made) + key.rank
    left = taken.batch_shape if hasattr(taken, "batch_shape") else taken.shape[:axes]
    ones = next((i for i, size in enumerate(left) if size != 1), len(left))
    return taken[(*(0,) * ones, ...)] if ones else taken
