"""Shapes of the functions of linalg, for both faces."""

from typing import NamedTuple

from isometry._rules import check
from isometry._rules.check import Shape


class Sizes(NamedTuple):
    """One product of reflections: a (*, m, k) with tau (*, given), given <= k."""

    batch: Shape
    m: int
    k: int
    given: int


def matrices(argument: str, shape: Shape) -> Shape:
    """The batch shape of a stack of matrices."""
    return check.stack(argument, shape, 2, "(*, m, n)")


def reflectors(a: Shape, tau: Shape, **others: Shape) -> Sizes:
    """Reflectors a (*, m, k), k <= m, and at most k numbers tau; batch shapes broadcast with those of `others`."""
    batch = check.stack("a", a, 2, "(*, m, k)")
    m, k = a[-2:]
    if k > m:
        raise ValueError(f"a must have at least as many rows as columns, shape (*, m, k) with m >= k, not {a}")
    if not tau or tau[-1] > k:
        raise ValueError(f"tau must have shape (*, k) with at most k = {k}, the columns of a, not {tau}")
    return Sizes(check.broadcast(a=batch, tau=tau[:-1], **others), m, k, tau[-1])


def other(shape: Shape, m: int, left: bool) -> Shape:
    """The batch shape of the matrices that Q of size m multiplies from the left or from the right."""
    form = (
        f"(*, {m}, n), which Q multiplies from the left," if left else f"(*, n, {m}), multiplied by Q from the right,"
    )
    if len(shape) < 2 or shape[-2 if left else -1] != m:
        raise ValueError(f"other must have shape {form} for a with {m} rows, not {shape}")
    return shape[:-2]
