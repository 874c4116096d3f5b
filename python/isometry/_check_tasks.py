"""Checks of the tasks' arguments, and their messages, in the style of `_check`, which has all others."""

from collections.abc import Iterable
from typing import NoReturn

from isometry._check import Shape


def variant(value: str, known: Iterable[str]) -> None:
    """The variant exists."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"variant must be one of {', '.join(map(repr, known))}, not {value!r}")


def images(shape: Shape) -> None:
    """A batch of images."""
    if len(shape) != 3:
        raise ValueError(f"images must have shape (B, height, width), not {shape}")


def not_permutation(n: int) -> NoReturn:
    """Not a permutation of 0..n-1."""
    raise ValueError(f"permutation must contain each of 0..{n - 1} once, in shape ({n},)")


def outside(argument: str, low: int, high: int) -> NoReturn:
    """Integers out of range."""
    raise ValueError(f"{argument} must lie in {low}..{high}")
