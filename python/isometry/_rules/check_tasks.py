"""Checks of the tasks' arguments, and their messages, in the style of `check`."""

import math
from typing import NoReturn

from isometry._rules import check
from isometry._rules.check import Shape


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


def vector(argument: str, shape: Shape, form: str) -> None:
    """One axis with something in it."""
    if len(shape) != 1 or not shape[0]:
        raise ValueError(f"{argument} must have shape {form}, at least one entry, not {shape}")


def ids(shape: Shape) -> None:
    """Sequences of class numbers."""
    if len(shape) != 2:
        raise ValueError(f"ids must have shape (S, B), not {shape}")


def ahead(k: int, steps: int) -> int:
    """How many steps ahead a sequence can be predicted."""
    if steps < 2:
        raise ValueError(f"ids must have at least 2 steps, not {steps}")
    return check.within("k", k, 1, steps - 1)


def positive(argument: str, value: object) -> float:
    """A finite number above 0."""
    number = check.number(argument, value)
    if not 0 < number < math.inf:
        raise ValueError(f"{argument} must be a finite number above 0, not {number}")
    return number


def even(argument: str, value: int) -> int:
    """An even number of things, at least 2."""
    number = check.count(argument, value, 2)
    if number % 2:
        raise ValueError(f"{argument} must be even, not {number}")
    return number


def enough(samples: int, window: int) -> None:
    """Audio that fills a window."""
    if samples < window:
        raise ValueError(f"audio must have at least {window} samples, one window, not {samples}")


def silent(argument: str) -> NoReturn:
    """A waveform that cannot be scaled to 1."""
    raise ValueError(f"{argument} must give a waveform that is not zero everywhere")


def alike(shape: Shape, target: Shape) -> None:
    """The target is not empty, and the output has its shape: no broadcasting."""
    if shape != target:
        raise ValueError(f"output must have the shape of target, {target}, not {shape}")
    if not math.prod(target):
        raise ValueError(f"target must have at least one entry, not shape {target}")


def sequences(shape: Shape) -> None:
    """A batch of padded sequences."""
    if len(shape) < 2:
        raise ValueError(f"target must have shape (T, B, ...), not {shape}")


def without_scale(normaliser: str) -> NoReturn:
    """A target whose variance or power is zero."""
    what = "constant" if normaliser == "variance" else "zero everywhere"
    raise ValueError(f"target must not be {what}: its {normaliser} is 0")
