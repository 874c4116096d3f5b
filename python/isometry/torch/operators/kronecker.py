"""`Kronecker` on tensors; the definition is in `isometry._objects.kronecker`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from torch import Tensor

from ..._inverse import kronecker as inverse
from ..._objects.kronecker import KRONECKER, listed, shapes, sizes
from ..._rules import check, tolerance
from .._dispatch.function import dtype_name
from ..formulas import kronecker as formula
from ._declared import Declared
from ._inverse import stack, unstacked
from ._operator import tensor
from ._random import Draw, Drawing, stackable


class Kronecker(Declared, declaration=KRONECKER, matrix=formula.matrix, apply=formula.apply):
    """A Kronecker product of matrices, applied factor by factor.

    W = W_0 (x) W_1 (x) ... (x) W_{F-1}. The index of factor 0 is slowest, as in `torch.kron`. W is orthogonal or
    unitary if all factors are.

    Use it for products of small matrices: with factors 2 x 2, W x costs 2 n log2 n operations and W has 8 log2 n
    parameters. Do not use it for other matrices: it reaches no more than such products.

    Parameters
    ----------
    factors : sequence of Tensor, shapes (*, p_f, q_f)
        At least one, p_f, q_f >= 1; `*` is an optional batch shape, and those of the factors broadcast.

    Raises
    ------
    ValueError
        No factor, one that is not a matrix with at least one row and one column, or batch shapes that do not fit.
    TypeError
        Factors that are not a sequence, or not tensors of one floating precision.

    See Also
    --------
    BlockDiagonal : blocks that do not mix.
    isometry.torch.nn.KRU : the layer with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.

    References
    ----------
    Jose, Cisse, Fleuret: Kronecker recurrent units, ICML 2018.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> it.Kronecker([swap, torch.eye(2)]).apply(torch.arange(4.0))
    tensor([2., 3., 0., 1.])
    """

    __slots__ = ()

    factors: list[Tensor]

    def __init__(self, factors: Sequence[Tensor]) -> None:
        self._hold(*listed(factors))

    @classmethod
    def from_matrix(
        cls, w: Tensor, factor_sizes: Sequence[int | tuple[int, int]] | None = None, *, tol: float | None = None
    ) -> Kronecker:
        """The nearest factors of a Kronecker product, split off one after the other; not differentiable.

        Parameters
        ----------
        w : Tensor, shape (*, p, q)
            Real or complex; a ValueError if it is no such product.
        factor_sizes : sequence of int or (int, int), optional
            The shapes (p_f, q_f) of the factors, or the sizes of square ones; their product is (p, q). By default, for
            a square w, its prime factors.
        tol : float, optional
            The largest ||W - product||_F / ||W||_F accepted, by default sqrt(eps).

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> w = torch.kron(torch.eye(2), torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))
        >>> it.Kronecker.from_matrix(w, [2, 2])
        Kronecker(factors=[(2, 2), (2, 2)], dtype=torch.float32)
        """
        w = tensor("w", w)
        check.stack("w", tuple(w.shape), 2, "(*, p, q)")
        found = shapes(w.shape[-2], w.shape[-1], factor_sizes)
        factors = inverse.arguments(stack(w), found, tolerance.share(tol, dtype_name(w.dtype)))
        return cls([unstacked(f, w) for f in factors])

    @classmethod
    @stackable
    def random(cls, n: int, *, factor_sizes: Sequence[int] | None = None, **options: Unpack[Drawing]) -> Kronecker:
        """Haar-distributed orthogonal or unitary factors.

        Parameters
        ----------
        n : int
            Size.
        factor_sizes : sequence of int, optional
            Sizes of the square factors, whose product is n; by default the prime factors of n.
        generator : torch.Generator, optional
            Source of the numbers, by default torch's own.
        dtype : torch.dtype, optional
            By default `torch.get_default_dtype()`.
        device : torch.device, optional
            Where the arrays are made.
        batch_shape : sequence of int, optional
            The shape of the stack, by default () for one operator; its members are drawn one after another.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Kronecker.random(8, generator=torch.Generator().manual_seed(0))
        Kronecker(factors=[(2, 2), (2, 2), (2, 2)], dtype=torch.float32)
        """
        draw = Draw(options)
        return cls([draw.haar(size) for size in sizes(n, factor_sizes)])
