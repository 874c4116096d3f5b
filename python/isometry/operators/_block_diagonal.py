"""`BlockDiagonal` on NumPy arrays: the members of a stack along the diagonal of one matrix, by their own kernels."""

from typing import Any, Self

import numpy as np

from isometry import gpu
from isometry._arrays import Array, DType, ready
from isometry._backend import Place
from isometry._rules import check_expression
from isometry._rules.index import Key
from isometry.operators._immutable import Op
from isometry.operators._of_one import OfOne
from isometry.operators._operator import Gradients, Operator


class BlockDiagonal(OfOne[Op]):
    """The members of a stack along the diagonal of one matrix, zero elsewhere.

    A vector is cut into h pieces, one for each member: c = (W_1 x_1, ..., W_h x_h).

    Use it for several blocks in place of one matrix: parameters and costs are those of the blocks. Do not use it where
    every coordinate must reach every other in one product.

    Parameters
    ----------
    operator
        W_1, ..., W_h: a stack of batch_shape (*, h) of p x q matrices. The block-diagonal one has shape (h p, h q) and
        batch_shape (*).

    Attributes
    ----------
    operator
        The argument.

    Raises
    ------
    TypeError
        If it is not an operator of the NumPy interface.
    ValueError
        If it is a single operator, or a stack without members.

    See Also
    --------
    Kronecker : a product of small matrices that mixes all coordinates.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    Members act on their own pieces of the vectors, so the cost is that of the stack. The transition of a `recurrence`
    is h recurrences in one call, each over its own piece of the state. Neither forms an (h p, h q) matrix, but for
    activations of pairs that lie in different blocks. Gradients are those of the stack's arguments, under their names.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> turns = iso.BlockDiagonal(iso.Cayley(np.array([[1.0], [0.0]])))
    >>> turns
    BlockDiagonal(Cayley(n=2, batch_shape=(2,), dtype=float64))
    >>> turns.matrix()
    array([[ 0., -1.,  0.,  0.],
           [ 1.,  0.,  0.,  0.],
           [ 0.,  0.,  1.,  0.],
           [ 0.,  0.,  0.,  1.]])
    >>> turns([1.0, 2.0, 3.0, 4.0])
    array([-2.,  1.,  3.,  4.])
    """

    __slots__ = ()

    def __init__(self, operator: Op) -> None:
        check_expression.operator("operator", Operator, operator)
        shape, batch = check_expression.blocks(operator.shape, operator.batch_shape)
        self._put(operator=operator, shape=shape, batch_shape=batch, dtype=operator.dtype)

    def _picked(self, key: Key) -> Self:
        return self._like(self.operator[(*key.entries, slice(None))])

    # -------------------------------------------------------- hooks

    def _pieces(self, x: Array) -> Array:
        """Rows (nb, k, h q) as those of the stack, (nb h, k, q)."""
        h = self.operator.batch_shape[-1]
        nb, k, n = x.shape
        return ready(x.reshape(nb, k, h, n // h).swapaxes(1, 2), x.dtype).reshape(nb * h, k, n // h)

    def _whole(self, pieces: Array, out: Array) -> None:
        """The inverse of `_pieces`, into `out`."""
        h, (nb, k, n) = self.operator.batch_shape[-1], out.shape
        out.reshape(nb, k, h, n // h)[...] = pieces.reshape(nb, h, k, n // h).swapaxes(1, 2)

    def _determinant(self, backend: str | None) -> Any:
        return self.operator.det(backend=backend, check_finite=False).prod(-1)

    def _act(self, x: Array, out: Array, adjoint: bool, place: Place) -> None:
        if type(out) is gpu.Array:
            super()._act(x, out, adjoint, place)
            return
        pieces = self._pieces(x)
        made = np.empty((*pieces.shape[:2], self.operator.shape[adjoint]), x.dtype)
        self.operator._act(pieces, made, adjoint, place)
        self._whole(made, out)

    def _pull(self, x: Array, ct: Array, x_bar: Array, adjoint: bool, place: Place) -> Gradients:
        if type(x_bar) is gpu.Array:
            return super()._pull(x, ct, x_bar, adjoint, place)
        pieces = self._pieces(x)
        made = np.empty_like(pieces)
        grads = self.operator._pull(pieces, self._pieces(ct), made, adjoint, place)
        self._whole(made, x_bar)
        return grads

    def _diagonal(self, w: Array) -> Array:
        """The blocks (nb, h, p, q) of matrices (nb, h p, h q), a view."""
        h, (p, q) = self.operator.batch_shape[-1], self.operator.shape
        return np.einsum("bipiq->bipq", w.reshape(-1, h, p, h, q))

    def _formed(self, dtype: DType, place: Place) -> Array:
        blocks = self.operator._matrices(dtype, place)
        out = np.zeros((int(np.prod(self.batch_shape)), *self.shape), dtype)
        at = self._diagonal(out)
        at[...] = blocks.reshape(at.shape)
        return out

    def _pull_formed(self, w: Array | None, w_bar: Array, place: Place) -> Gradients:
        of_stack = lambda a: ready(self._diagonal(a), a.dtype).reshape(-1, *self.operator.shape)
        return self.operator._pull_matrices(None if w is None else of_stack(w), of_stack(w_bar), place)
