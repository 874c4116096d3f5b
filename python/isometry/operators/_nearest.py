"""Noisy matrices projected before an inverse map."""

from __future__ import annotations

from isometry import _threads
from isometry._arrays import Array, stacked
from isometry._inverse import procrustes
from isometry._rules import check


def projected(w: Array, nearest: bool, special: bool = False) -> Array:
    """The nearest orthogonal or unitary matrices if they are asked for, with `special` rotations; else w itself."""
    if not check.flag("nearest", nearest):
        return w
    found = procrustes.nearest(stacked(w, 2, w.shape[:-2], w.dtype), special, _threads.get_num_threads())
    return found.reshape(w.shape)
