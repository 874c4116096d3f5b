"""Checks of arrays that results are written to, in the style of `check`."""

from isometry._rules import check
from isometry._rules.check import Shape


def room(argument: str, shape: Shape, dtype: str, expected: Shape, result: str) -> None:
    """An array for the result has its shape and dtype."""
    check.exact(argument, shape, expected)
    if dtype != result:
        raise TypeError(f"{argument} must have the dtype of the result, {result}, not {dtype}")


def written(argument: str, whole: bool) -> None:
    """An array for the result can be written as it is."""
    if not whole:
        raise ValueError(f"{argument} must be contiguous, and writeable")
