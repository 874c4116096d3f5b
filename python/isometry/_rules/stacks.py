"""Pairing of a stack of operators with a stack of rows: the fold to (nb, k, n) that the kernels take, for both faces.

The leading axes of x broadcast against the operator's batch shape. An axis along which the operator changes is a
*batch* axis, every other one a *row* axis. After moving the batch axes to the front and flattening both groups,
operator b applies to every row j of block b:

    x (*full, n)  ->  permute to (*batch axes, *row axes, n)  ->  (nb, k, n)

This module handles shapes only, not arrays.

"""

from math import prod
from typing import NamedTuple

from isometry._rules import check
from isometry._rules.check import Shape


class Fold(NamedTuple):
    """The plan: expand x to (*full, n), permute if perm is given, copy to C order, reshape to (nb, k, n)."""

    full: Shape  #: leading axes of the result
    nb: int  #: operators
    k: int  #: rows per operator
    perm: tuple[int, ...] | None  #: order of the leading axes, batch axes first; None: unchanged
    inverse: tuple[int, ...] | None  #: the inverse permutation
    permuted: Shape  #: `full` in the order of `perm`: the kernel's result is (*permuted, n) before the inverse


def plan(op_batch: Shape, x_shape: Shape, features: int, argument: str = "x") -> Fold:
    """The fold of rows x (..., features) for an operator of batch shape `op_batch`; raises for shapes that do not
    fit."""
    full = check.rows(argument, x_shape, features, op_batch)
    if not op_batch:
        return Fold(full, 1, prod(full), None, None, full)
    padded = (1,) * (len(full) - len(op_batch)) + op_batch
    batch = [axis for axis, size in enumerate(padded) if size != 1]
    rows = [axis for axis, size in enumerate(padded) if size == 1]
    nb, k = prod([full[axis] for axis in batch]), prod([full[axis] for axis in rows])
    perm = (*batch, *rows)
    if all(axis == place for place, axis in enumerate(perm)):
        return Fold(full, nb, k, None, None, full)
    inverse = tuple(perm.index(axis) for axis in range(len(perm)))
    return Fold(full, nb, k, perm, inverse, tuple(full[axis] for axis in perm))


def summed_axes(wide: Shape, own: Shape) -> tuple[int, ...]:
    """The axes of a gradient of shape `wide` over which it is summed to the shape `own` of a broadcast argument.

    Summing over them (without keeping dimensions) and reshaping to `own` is the adjoint of broadcasting.
    """
    extra = len(wide) - len(own)
    return (*range(extra), *(extra + axis for axis, size in enumerate(own) if size == 1 and wide[extra + axis] != 1))
