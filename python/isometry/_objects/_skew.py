"""What the objects of a packed skew-symmetric or skew-Hermitian matrix share."""

from typing import NoReturn

from isometry._rules import check
from isometry._rules.check import Shape


def real_upper() -> NoReturn:
    """A diagonal given with a real triangle."""
    raise ValueError("diagonal must not be given with a real upper: a real skew-symmetric matrix has a zero diagonal")


def rotvec(shape: Shape, dtype: str) -> None:
    """Rotation vectors: real, three numbers each."""
    check.real("rotvec", dtype)
    if not shape or shape[-1] != 3:
        raise ValueError(f"rotvec must have shape (*, 3), not {shape}")


def of_space(shape: Shape, complex_: bool, last: bool) -> None:
    """A rotation of space, which has a rotation vector."""
    if complex_:
        raise TypeError("rotvec needs a real operator, not a complex one")
    if shape != (3, 3):
        raise ValueError(f"rotvec needs a rotation of three dimensions, not of {shape[0]}")
    if last:
        raise ValueError("rotvec needs a rotation: signs and phases are not part of one")


def half_turn() -> NoReturn:
    """A rotation by pi, which has the eigenvalue -1."""
    raise ValueError(
        "rotvec must not turn by pi, or by an odd multiple of it: W then has the eigenvalue -1, which no Cayley "
        "transform without signs has"
    )


def not_skew() -> NoReturn:
    """A full matrix that is not skew."""
    raise ValueError("a must be skew-symmetric (real) or skew-Hermitian (complex): a = -a^H")
