"""Shapes of the functions of linalg, for both faces."""

from typing import NamedTuple, NoReturn

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


def factored(argument: str, shape: Shape, mode: str) -> Shape:
    """The batch shape of matrices whose QR factorisation is asked for."""
    check.choice("mode", mode, "reduced", "complete")
    return matrices(argument, shape)


def no_gradient_of_complete(argument: str, shape: Shape) -> NoReturn:
    raise RuntimeError(
        f"{argument} must have at least as many columns as rows with mode='complete' where a gradient is recorded, "
        f"not shape {shape}: take mode='reduced'"
    )


def reflectors(a: Shape, tau: Shape, other: Shape | None = None, *, left: bool = True, name: str = "a") -> Sizes:
    """Reflectors a (*, m, k), k <= m, and at most k numbers tau; `other` is multiplied by Q from the left or the right.

    Batch shapes broadcast. Messages call a by the given name.
    """
    batches = {name: check.stack(name, a, 2, "(*, m, k)")}
    m, k = a[-2:]
    if k > m:
        raise ValueError(f"{name} must have at least as many rows as columns, shape (*, m, k) with m >= k, not {a}")
    if not tau or tau[-1] > k:
        raise ValueError(f"tau must have shape (*, k) with at most k = {k}, the columns of {name}, not {tau}")
    batches["tau"] = tau[:-1]
    if other is not None:
        if len(other) < 2 or other[-2 if left else -1] != m:
            form = f"(*, {m}, n), for Q from the left" if left else f"(*, n, {m}), for Q from the right"
            raise ValueError(f"other must have shape {form} with {name} of {m} rows, not {other}")
        batches["other"] = other[:-2]
    return Sizes(check.broadcast(**batches), m, k, tau[-1])


def nearest(shape: Shape, dtype: str, *, special: bool) -> Shape:
    """The batch shape of matrices whose nearest orthogonal ones, or nearest rotations, are asked for."""
    batch = matrices("a", shape)
    if special and dtype.startswith("complex"):
        raise TypeError(f"a must be real with special=True, for its determinant is 1 or -1; got {dtype}")
    if special and shape[-2] != shape[-1]:
        raise ValueError(f"a must be square with special=True, shape (*, n, n), not {shape}")
    return batch
