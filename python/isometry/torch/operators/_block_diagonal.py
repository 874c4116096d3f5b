"""`BlockDiagonal` on tensors: the members of a stack along the diagonal of one matrix, by their own kernels."""

from typing import Any, Self

import torch
from torch import Tensor

from ..._rules import check_expression
from ..._rules.index import Key
from ._of_one import OfOne
from ._operator import Op


class BlockDiagonal(OfOne[Op]):
    """The members of a stack along the diagonal of one matrix, zero elsewhere.

    A vector is cut into h pieces, one for each member: c = (W_1 x_1, ..., W_h x_h).

    Use it for several blocks in place of one matrix: parameters and costs are those of the blocks. Do not use it where
    every coordinate must reach every other in one product.

    Parameters
    ----------
    operator : Operator
        W_1, ..., W_h: a stack of batch_shape (*, h) of p x q matrices. The block-diagonal one has shape (h p, h q) and
        batch_shape (*).

    Raises
    ------
    TypeError
        An argument that is not an operator of the torch interface.
    ValueError
        A single operator, or a stack without members.

    See Also
    --------
    Kronecker : a product of small matrices that mixes all coordinates.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    Members act on their own pieces of the vectors, so the cost is that of the stack. The transition of a `recurrence`
    is h recurrences in one call, each over its own piece of the state. Neither forms an (h p, h q) matrix, but for
    activations of pairs that lie in different blocks.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> turns = it.BlockDiagonal(it.Cayley(torch.tensor([[1.0], [0.0]])))
    >>> turns
    BlockDiagonal(Cayley(n=2, batch_shape=(2,), dtype=torch.float32))
    >>> turns(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([-2.,  1.,  3.,  4.])
    """

    __slots__ = ()

    def __init__(self, operator: Op) -> None:
        self._take(operator)
        self._shape, self._batch_shape = check_expression.blocks(operator.shape, operator.batch_shape)

    def _like(self, operator: Any) -> Self:
        return type(self)(operator)

    def _picked(self, key: Key) -> Self:
        return self._like(self._operator[(*key.entries, slice(None))])

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Tensor:
        return diagonal(self._operator.matrix(backend=backend, check_finite=check_finite))

    def _determinant(self, backend: str | None) -> Tensor:
        return self._operator.det(backend=backend).prod(-1)

    def _rows(self, x: Tensor, adjoint: bool, backend: str | None) -> Tensor:
        h = self._operator.batch_shape[-1]
        pieces = x.unflatten(-1, (h, self._operator.shape[0 if adjoint else 1]))
        if self._batch_shape:  # of the members, beside the rows of each of them
            pieces = pieces.movedim(1, 0).unflatten(1, self._batch_shape)
            out = self._operator._act(pieces, adjoint, backend).flatten(1, -3).movedim(0, 1)
        else:
            out = self._operator._each(pieces, adjoint, backend)
        return out.flatten(-2)


def diagonal(blocks: Tensor) -> Tensor:
    """The matrix (*, h p, h q) of blocks (*, h, p, q), zero outside of them."""
    h, p, q = blocks.shape[-3:]
    if h == 1:
        return blocks.squeeze(-3)
    at = torch.eye(h, dtype=blocks.dtype, device=blocks.device)
    # a product with 0 would make NaN of infinity
    spread = torch.where(at.bool()[:, None, :, None], blocks.unsqueeze(-2), 0)
    return spread.reshape(*blocks.shape[:-3], h * p, h * q)
