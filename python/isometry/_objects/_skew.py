"""What the objects of a packed skew-symmetric or skew-Hermitian matrix share."""

from typing import NoReturn


def real_upper() -> NoReturn:
    """A diagonal beside a real triangle."""
    raise ValueError("diagonal must not be given with a real upper: a real skew-symmetric matrix has a zero diagonal")
