"""`Composition` on NumPy arrays: the product of operators, applied factor by factor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from isometry import _determinants
from isometry._arrays import Array, DType, common, folded, gradient, stacked, unfolded
from isometry._backend import Place
from isometry._rules import check, check_expression, stacks
from isometry._rules.check import Shape
from isometry._rules.expression import converted
from isometry._rules.index import Key, picked
from isometry.gpu._calls import beside
from isometry.operators._immutable import Combined
from isometry.operators._operator import Gradients, Operator
from isometry.operators._random import field


class Composition(Combined):
    """The product of several operators, ``op1 @ op2``.

    W = W_1 W_2 ... W_k, and W_k acts first.

    Parameters
    ----------
    *operators
        W_1, W_2, ..., each as wide as the next is high; their batch shapes broadcast against each other. A composition
        among them counts as its factors.

    Attributes
    ----------
    operators
        The factors, a tuple.

    Raises
    ------
    ValueError
        If no operator is given, or the shapes do not fit.
    TypeError
        If one of them is not an operator of the NumPy interface.

    See Also
    --------
    Adjoint : the conjugate transpose.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    Rows go through the factors one by one, the last one first; the matrix is that of the first factor with the others
    applied to its rows. `apply_vjp` and `matrix_vjp` return under "operators" a list with a dict of gradients for each
    factor; a factor that occurs twice in the product has two, to be added.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> a, b = iso.Cayley(np.ones(3)), iso.Dense(np.arange(6.0).reshape(3, 2))
    >>> product = a @ b
    >>> product
    Composition(Cayley(n=3, dtype=float64), Dense(p=3, q=2, dtype=float64))
    >>> np.allclose(product.matrix(), a.matrix() @ b.weight)
    True
    >>> [sorted(grads) for grads in product.matrix_vjp(np.ones((3, 2)))["operators"]]
    [['upper'], ['weight']]
    """

    __slots__ = ("operators",)

    operators: tuple[Operator, ...]

    def __init__(self, *operators: Operator) -> None:
        flat: list[Operator] = []
        for operator in operators:
            check_expression.operator("operators", Operator, operator)
            flat.extend(operator.operators if isinstance(operator, Composition) else (operator,))
        check_expression.factors([operator.shape for operator in flat])
        batch: Shape = ()
        for operator in flat:
            batch = check.broadcast(product=batch, factor=operator.batch_shape)
        dtype = common(*(operator.dtype for operator in flat))
        self._put(operators=tuple(flat), shape=(flat[0].shape[0], flat[-1].shape[1]), batch_shape=batch, dtype=dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.operators

    def _parts(self) -> list[str]:
        return [repr(operator) for operator in self.operators]

    def astype(self, dtype: DTypeLike) -> Composition:
        target = field(dtype).name
        check_expression.conversion(self.dtype.name, target)
        made = [op.astype(converted(self.dtype.name, op.dtype.name, target)) for op in self.operators]
        same = all(a is b for a, b in zip(made, self.operators, strict=True))
        return self if same else Composition(*made)

    def _picked(self, key: Key) -> Composition:
        return Composition(*(picked(op, op.batch_shape, key) for op in self.operators))

    # -------------------------------------------------------- hooks

    def _made_of(self) -> tuple[Any, ...]:
        return self.operators

    def _check_held(self, check_finite: bool) -> None:
        for operator in self.operators:
            operator._check_held(check_finite)

    def _members(self) -> tuple[Any, ...]:
        return tuple(a for operator in self.operators for a in operator._members())

    def _local(self) -> Composition:
        return Composition(*(operator._local() for operator in self.operators))

    def _chain(self, x: Array, result: Array, adjoint: bool, place: Place) -> tuple[tuple[Operator, ...], list[Array]]:
        """The factors in the order in which they act on rows, and the rows that each of them reads."""
        factors, read = self.operators if adjoint else self.operators[::-1], [x]
        for operator in factors[:-1]:
            between = beside(result, (*x.shape[:-1], operator.shape[adjoint]), x.dtype)
            _act(operator, self.batch_shape, read[-1], between, adjoint, place)
            read.append(between)
        return factors, read

    def _act(self, x: Array, out: Array, adjoint: bool, place: Place) -> None:
        factors, read = self._chain(x, out, adjoint, place)
        _act(factors[-1], self.batch_shape, read[-1], out, adjoint, place)

    def _pull(self, x: Array, ct: Array, x_bar: Array, adjoint: bool, place: Place) -> Gradients:
        factors, read = self._chain(x, x_bar, adjoint, place)
        grads = []
        for k in reversed(range(len(factors))):
            bar = beside(x_bar, read[k].shape, x.dtype) if k else x_bar
            grads.append(_pull(factors[k], self.batch_shape, read[k], ct, bar, adjoint, place))
            ct = bar
        return {"operators": grads[::-1] if adjoint else grads}

    def _determinant(self, backend: str | None) -> Any:
        found = _determinants.of_product(self.operators, backend, self.matrix)
        return super()._determinant(backend) if found is None else found

    def _formed(self, dtype: DType, place: Place) -> Array:
        *_, w = self._rows_of_matrices(self.operators[0]._matrices(dtype, place), place)
        return stacked(_conjugate(w), 2, self.batch_shape, dtype)

    def _rows_of_matrices(self, first: Array, place: Place) -> list[Array]:
        """The rows of conj(W_1), conj(W_1 W_2), ...: each is the previous one multiplied by the adjoint of the next
        factor."""
        operator = self.operators[0]
        rows = [_conjugate(first).reshape(*operator.batch_shape, *operator.shape)]
        for operator in self.operators[1:]:
            x = rows[-1]
            fold = stacks.plan(operator._beside_rows(), x.shape, x.shape[-1])
            out = np.empty((fold.nb, fold.k, operator.shape[1]), x.dtype)
            operator._act(folded(x, fold, x.dtype), out, True, place)
            rows.append(unfolded(out, fold))
        return rows

    def _pull_formed(self, w: Array | None, w_bar: Array, place: Place) -> Gradients:
        del w
        dtype = w_bar.dtype
        first = self.operators[0]
        w_first = first._matrices(dtype, place)
        rows = self._rows_of_matrices(w_first, place)
        ct = _conjugate(w_bar).reshape(rows[-1].shape)
        grads = []
        for operator, x in zip(self.operators[:0:-1], rows[-2::-1], strict=True):
            fold = stacks.plan(operator._beside_rows(), x.shape, x.shape[-1])
            x_bar = np.empty((fold.nb, fold.k, x.shape[-1]), dtype)
            grads.append(operator._pull(folded(x, fold, dtype), folded(ct, fold, dtype), x_bar, True, place))
            ct = gradient(unfolded(x_bar, fold), x.shape, dtype)
        w_bar = stacked(_conjugate(ct), 2, first.batch_shape, dtype)
        return {"operators": [first._pull_matrices(w_first, w_bar, place), *grads[::-1]]}


Operator._product = Composition


def _conjugate(a: Array) -> Array:
    return a.conj() if a.dtype.kind == "c" else a


def _fold(operator: Operator, batch: Shape, x: Array) -> stacks.Fold:
    """The fold of the rows (nb, k, n) of a stack of that batch shape for one factor."""
    return stacks.plan(operator._beside_rows(), (*batch, *x.shape[1:]), x.shape[-1])


def _folded(x: Array, fold: stacks.Fold) -> Array:
    """Rows (nb, k, n) of the whole stack as one factor takes them."""
    return folded(x.reshape(*fold.full, x.shape[-1]), fold, x.dtype)


def _act(operator: Operator, batch: Shape, x: Array, out: Array, adjoint: bool, place: Place) -> None:
    """Rows of the whole stack through one factor."""
    fold = _fold(operator, batch, x)
    if fold.perm is None:  # the result lies as the factor writes it
        operator._act(_folded(x, fold), out.reshape(fold.nb, fold.k, out.shape[-1]), adjoint, place)
    else:
        made = np.empty((fold.nb, fold.k, out.shape[-1]), x.dtype)
        operator._act(_folded(x, fold), made, adjoint, place)
        out[...] = unfolded(made, fold).reshape(out.shape)


def _pull(
    operator: Operator, batch: Shape, x: Array, ct: Array, x_bar: Array, adjoint: bool, place: Place
) -> Gradients:
    """The gradients of one factor; the gradient of its rows is written to x_bar."""
    fold = _fold(operator, batch, x)
    shape = fold.nb, fold.k, x.shape[-1]
    # a gradient of the layout of the rows is written in place
    made = x_bar.reshape(shape) if fold.perm is None else np.empty(shape, x.dtype)
    grads = operator._pull(_folded(x, fold), _folded(ct, fold), made, adjoint, place)
    if fold.perm is not None:
        x_bar[...] = unfolded(made, fold).reshape(x_bar.shape)
    return grads
