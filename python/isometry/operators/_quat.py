"""Unit quaternions (x, y, z, w) of rotations of space: from and to the vectors of which objects are made."""

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, all_finite, taken
from isometry._objects import _skew
from isometry._rules import check


def parts(quat: ArrayLike, scalar_first: bool, check_finite: bool) -> tuple[Array, Array]:
    """v (*, 3) and w >= 0 (*, 1), divided by the largest entry."""
    q, scalar_first = taken("quat", quat), check.flag("scalar_first", scalar_first)
    _skew.quat(q.shape, q.dtype.name)
    all_finite(check_finite, quat=q)
    largest = np.abs(q).max(-1, keepdims=True)
    if (largest == 0).any():
        _skew.no_quaternion()
    with np.errstate(invalid="ignore"):  # infinite entries, unchecked
        q = q / largest
    v, w = (q[..., 1:], q[..., :1]) if scalar_first else (q[..., :3], q[..., 3:])
    return np.where(w < 0, -v, v), np.abs(w)


def rodrigues(v: Array, w: Array) -> Array:
    """v / w, tan(angle / 2) times the axis."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        g: Array = v / w
    if (np.isinf(g).any(-1) | (w == 0)[..., 0]).any():
        _skew.half_turn("quat")
    return g


def rotvec(v: Array, w: Array) -> Array:
    """2 atan(|v| / w) / |v| v, the angle times the axis."""
    size = _length(v)
    factor = np.divide(2 * np.arctan2(size, w), size, out=2 / np.maximum(w, size), where=size > 0)
    return np.asarray(v * factor)


def of_rodrigues(g: Array, scalar_first: bool) -> Array:
    """(g, 1), divided by its length."""
    largest = np.maximum(np.abs(g).max(-1, keepdims=True), 1)
    return _joined(g / largest, 1 / largest, scalar_first)


def of_rotvec(r: Array, scalar_first: bool) -> Array:
    """(sin(|r| / 2) r / |r|, cos(|r| / 2)), or its negative."""
    size = _length(r)
    w = np.cos(size / 2)
    v = r * np.divide(np.sin(size / 2), size, out=np.full_like(size, 0.5), where=size > 0)
    return _joined(np.where(w < 0, -v, v), np.abs(w), scalar_first)


def _length(v: Array) -> Array:
    return np.hypot(np.hypot(v[..., :1], v[..., 1:2]), v[..., 2:])


def _joined(v: Array, w: Array, scalar_first: bool) -> Array:
    q = np.concatenate((w, v) if check.flag("scalar_first", scalar_first) else (v, w), -1)
    return np.asarray(q / np.hypot(_length(v), w))
