"""What inverse maps read: matrices that are orthogonal or unitary, or projected before."""

from typing import Any

from numpy.typing import ArrayLike

from isometry import _threads
from isometry._arrays import Array, all_finite, common, stacked, taken
from isometry._inverse import procrustes
from isometry._rules import check, tolerance
from isometry._rules.check import Shape


def matrices(
    w: ArrayLike, nearest: bool, tol: float | None, check_finite: bool, *, special: bool = False
) -> tuple[Array, Shape, float]:
    """Matrices w (*, n, n) as (nb, n, n), their batch shape, and the largest entry of |W^H W - I| that is accepted; the
    nearest real ones with `special` are rotations.
    """
    w = taken("w", w)
    batch = check.square("w", w.shape)
    all_finite(check_finite, w=w)
    w, dtype = projected(w, nearest, special and w.dtype.kind != "c"), common(w)
    return stacked(w, 2, batch, dtype), batch, tolerance.unitary(tol, w.shape[-1], dtype.name)


def unstacked(found: dict[str, Array], batch: Shape) -> dict[str, Any]:
    """The arguments (nb, ...) as keywords, arrays (*batch, ...)."""
    return {name: a.reshape((*batch, *a.shape[1:])) for name, a in found.items()}


def projected(w: Array, nearest: bool, special: bool = False) -> Array:
    """The nearest orthogonal or unitary matrices if they are asked for, with `special` rotations; else w itself."""
    if not check.flag("nearest", nearest):
        return w
    found = procrustes.nearest(stacked(w, 2, w.shape[:-2], w.dtype), special, _threads.get_num_threads())
    return found.reshape(w.shape)
