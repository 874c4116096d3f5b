"""`Adjoint` on NumPy arrays: W^H of an operator W, by the operator's own kernels."""

from typing import Any

import numpy as np

from isometry._arrays import Array, DType
from isometry._backend import Place
from isometry._rules import check_expression
from isometry.operators._immutable import Op
from isometry.operators._of_one import OfOne
from isometry.operators._operator import Gradients, Operator


class Adjoint(OfOne[Op]):
    """The conjugate transpose of an operator, ``op.H``: c = W^H x.

    Parameters
    ----------
    operator
        W, an operator or a stack.

    Attributes
    ----------
    operator
        The argument.

    Raises
    ------
    TypeError
        If it is not an operator of the NumPy interface.

    See Also
    --------
    Composition : the product of operators.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    Gradients are those of the original's arguments, under their names: `matrix_vjp` pulls the conjugate transpose of
    the cotangent back through W. The adjoint of an adjoint, ``op.H.H``, is the original itself.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> op = iso.Householder(np.array([[1.0], [2.0], [2.0]]), sign=-1.0)
    >>> op.H
    Adjoint(Householder(n=3, m=1, last='sign', dtype=float64))
    >>> np.allclose(op.H(op([1.0, 2.0, 3.0])), [1.0, 2.0, 3.0]), op.H.H is op
    (True, True)
    >>> sorted(op.H.matrix_vjp(np.eye(3)))
    ['sign', 'vectors']
    """

    __slots__ = ()

    def __init__(self, operator: Op) -> None:
        check_expression.operator("operator", Operator, operator)
        self._put(operator=operator, shape=operator.shape[::-1], batch_shape=operator.batch_shape, dtype=operator.dtype)

    @property
    def H(self) -> Op:  # type: ignore[override]
        """The original operator."""
        return self.operator

    # -------------------------------------------------------- hooks

    def _determinant(self, backend: str | None) -> Any:
        return self.operator._determinant(backend).conj()

    def _act(self, x: Array, out: Array, adjoint: bool, place: Place) -> None:
        self.operator._act(x, out, not adjoint, place)

    def _pull(self, x: Array, ct: Array, x_bar: Array, adjoint: bool, place: Place) -> Gradients:
        return self.operator._pull(x, ct, x_bar, not adjoint, place)

    def _formed(self, dtype: DType, place: Place) -> Array:
        return _transposed(self.operator._matrices(dtype, place))

    def _pull_formed(self, w: Array | None, w_bar: Array, place: Place) -> Gradients:
        return self.operator._pull_matrices(None if w is None else _transposed(w), _transposed(w_bar), place)


Operator._transpose = Adjoint


def _transposed(w: Array) -> Array:
    """W^H of each matrix, in C order."""
    turned = np.ascontiguousarray(w.swapaxes(-1, -2))
    return turned.conj() if turned.dtype.kind == "c" else turned
