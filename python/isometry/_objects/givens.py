"""Products of plane rotations at chosen pairs of coordinates: W = G_1 G_2 ... G_m, G_k turns the plane (i_k, j_k).

n stands in the shape of the first argument, an empty array (n, 0) of the type of W, since no other argument has it.
"""

from typing import Any

from isometry._objects._declaration import Declaration, Determinant
from isometry._rules import check

GIVENS = Declaration(
    "Givens", "givens", empty=("m",), checked=("frame", "pairs"), required=3, determinant=Determinant()
)


def frame(n: object) -> tuple[int, int]:
    """The shape of the first argument for a W of this size."""
    return check.count("n", n, 1), 0  # type: ignore[arg-type]


def drawn(n: object, m: object) -> tuple[int, int]:
    """n and m of a random product; without a second coordinate there are no pairs."""
    (size, _), many = frame(n), check.count("m", m, 0)  # type: ignore[arg-type]
    if size == 1 and many:
        raise ValueError(f"m must be 0 with n = 1, which has no pairs, not {many}")
    return size, many


class Sized:
    """The size of W, read off its frame."""

    __slots__ = ()

    frame: Any

    @property
    def n(self) -> int:
        """Size of W."""
        return int(self.frame.shape[-2])
