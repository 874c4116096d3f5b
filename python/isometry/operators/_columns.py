"""`Columns` on NumPy arrays: the first columns of an operator, by the operator's own kernels."""

from typing import Any, Self

import numpy as np

from isometry import gpu
from isometry._arrays import Array, DType
from isometry._backend import Place
from isometry._rules import check_expression
from isometry.operators._immutable import Op
from isometry.operators._of_one import OfOne
from isometry.operators._operator import Gradients, Operator


class Columns(OfOne[Op]):
    """The first columns of an operator, ``op.columns(count)``: a matrix of n_out rows with orthonormal columns.

    Parameters
    ----------
    operator
        W, an operator or a stack.
    count
        How many of its columns, 1 <= count <= n_in.

    Attributes
    ----------
    operator
        The argument.

    Raises
    ------
    TypeError
        If it is not an operator of the NumPy interface, or the count not an integer.
    ValueError
        A count outside 1..n_in.

    See Also
    --------
    Householder : few reflections give few columns cheaply.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    The operator is applied to rows filled up with zeros, its matrix to the first unit vectors. So m reflections take of
    order n m count operations for their first columns, and no n x n matrix is formed. Gradients are those of the
    original's arguments, under their names.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> op = iso.Householder.random(1000, 3, rng=0)
    >>> thin = op.columns(2)
    >>> thin.shape, thin.H.shape
    ((1000, 2), (2, 1000))
    >>> np.allclose(thin.matrix().T @ thin.matrix(), np.eye(2))
    True
    """

    __slots__ = ()

    def __init__(self, operator: Op, count: int) -> None:
        check_expression.operator("operator", Operator, operator)
        shape = (operator.shape[0], check_expression.some_columns(count, operator.shape[1]))
        self._put(operator=operator, shape=shape, batch_shape=operator.batch_shape, dtype=operator.dtype)

    def _like(self, operator: Any) -> Self:
        return type(self)(operator, self.shape[1])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.operator, self.shape[1])

    def _parts(self) -> list[str]:
        return [*super()._parts(), f"count={self.shape[1]}"]

    def _made_of(self) -> tuple[Any, ...]:
        return super()._made_of() if self.shape[0] == self.shape[1] else ()

    # -------------------------------------------------------- hooks

    def _filled(self, x: Array) -> Array:
        """The rows filled up with zeros."""
        out = np.zeros((*x.shape[:-1], self.operator.shape[1]), x.dtype)
        out[..., : x.shape[-1]] = x
        return out

    def _units(self, dtype: DType, nb: int) -> Array:
        """The first unit vectors as rows, for every member of the stack."""
        rows = np.eye(self.shape[1], self.operator.shape[1], dtype=dtype)
        return np.ascontiguousarray(np.broadcast_to(rows, (nb, *rows.shape)))

    def _determinant(self, backend: str | None) -> Any:
        return self.operator._determinant(backend)

    def _act(self, x: Array, out: Array, adjoint: bool, place: Place) -> None:
        if type(out) is gpu.Array:
            super()._act(x, out, adjoint, place)
            return
        if not adjoint:
            self.operator._act(self._filled(x), out, False, place)
            return
        full = np.empty((*x.shape[:-1], self.operator.shape[1]), x.dtype)
        self.operator._act(x, full, True, place)
        out[...] = full[..., : self.shape[1]]

    def _pull(self, x: Array, ct: Array, x_bar: Array, adjoint: bool, place: Place) -> Gradients:
        if type(x_bar) is gpu.Array:
            return super()._pull(x, ct, x_bar, adjoint, place)
        if adjoint:
            return self.operator._pull(x, self._filled(ct), x_bar, True, place)
        x = self._filled(x)
        full = np.empty_like(x)
        grads = self.operator._pull(x, ct, full, False, place)
        x_bar[...] = full[..., : self.shape[1]]
        return grads

    def _formed(self, dtype: DType, place: Place) -> Array:
        nb = int(np.prod(self.batch_shape))
        out = np.empty((nb, *self.shape[::-1]), dtype)
        self.operator._act(self._units(dtype, nb), out, False, place)
        return np.ascontiguousarray(out.swapaxes(-1, -2))

    def _pull_formed(self, w: Array | None, w_bar: Array, place: Place) -> Gradients:
        del w
        units = self._units(w_bar.dtype, len(w_bar))
        ct = np.ascontiguousarray(w_bar.swapaxes(-1, -2))
        return self.operator._pull(units, ct, np.empty_like(units), False, place)


Operator._part = Columns
