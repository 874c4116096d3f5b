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


def quat(shape: Shape, dtype: str) -> None:
    """Quaternions: real, four numbers each."""
    check.real("quat", dtype)
    if not shape or shape[-1] != 4:
        raise ValueError(f"quat must have shape (*, 4), not {shape}")


def no_quaternion() -> NoReturn:
    """A quaternion of length zero, which no rotation has."""
    raise ValueError("quat must not be zero: a rotation is a quaternion of any other length")


def of_space(shape: Shape, complex_: bool, last: bool, what: str = "rotvec") -> None:
    """A rotation of space, which has a rotation vector and a quaternion."""
    if complex_:
        raise TypeError(f"{what} needs a real operator, not a complex one")
    if shape != (3, 3):
        raise ValueError(f"{what} needs a rotation of three dimensions, not of {shape[0]}")
    if last:
        raise ValueError(f"{what} needs a rotation: signs and phases are not part of one")


def half_turn(argument: str = "rotvec") -> NoReturn:
    """A rotation by pi, which has the eigenvalue -1."""
    raise ValueError(
        f"{argument} must not turn by pi, or by an odd multiple of it: W then has the eigenvalue -1, which no Cayley "
        "transform without signs has"
    )


def not_skew() -> NoReturn:
    """A full matrix that is not skew."""
    raise ValueError("a must be skew-symmetric (real) or skew-Hermitian (complex): a = -a^H")
