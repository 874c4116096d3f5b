"""`Dense` on tensors: a matrix as an operator, W = weight."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from ..._objects.dense import DENSE
from ..._rules import check
from .._dispatch.function import place
from .._dispatch.mode import Mode, by_kernels
from ..formulas import dense as formula
from ._blocks import blocks
from ._declared import Declared
from ._operator import Arguments
from ._random import Draw, Drawing, stackable


class Dense(Declared, declaration=DENSE, matrix=formula.matrix, apply=formula.apply):
    """A matrix, or a stack of matrices, with the methods of every operator: W = weight.

    For instance the recurrent matrix of an unconstrained network.

    Use it for any matrix: `isometry.torch.optim.CayleyRMSprop` keeps a unitary one unitary. Do not use it with other
    optimisers for a matrix that must stay orthogonal: take `Householder` or `Cayley`.

    Parameters
    ----------
    weight : Tensor, shape (*, p, q)
        `*` is an optional batch shape.

    Raises
    ------
    ValueError
        Shapes that do not fit.
    TypeError
        An argument other than a tensor of a floating or complex dtype.

    See Also
    --------
    Householder, Cayley : orthogonal for all values of their arguments.
    :doc:`choosing` : all operators, with what they reach and cost.

    References
    ----------
    Wisdom, Powers, Hershey, Le Roux, Atlas: Full-capacity unitary recurrent neural networks, NIPS 2016, where W itself
    is trained.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.Dense(torch.tensor([[1.0, 2.0]])).apply(torch.tensor([3.0, 4.0]))
    tensor([11.])
    """

    __slots__ = ()

    weight: Tensor

    def __init__(self, weight: Tensor) -> None:
        self._hold(weight)

    def _each(self, x: Tensor, adjoint: bool, backend: str | None) -> Tensor:
        if not by_kernels(self.weight, x) or place(backend) == "gpu":
            return super()._each(x, adjoint, backend)
        return blocks(self.weight.mH if adjoint else self.weight, x)

    def _formed(self, how: Mode, arguments: Arguments, backend: str | None) -> Tensor:  # noqa: ARG002
        return self._by_formula(arguments)

    @classmethod
    @stackable
    def random(cls, n: int, **options: Unpack[Drawing]) -> Dense:
        """A Haar-distributed orthogonal or unitary matrix: Q of a Gaussian matrix, times the phases of diag(R).

        Parameters
        ----------
        n : int
            Size.
        generator : torch.Generator, optional
            The random generator, by default torch's own.
        dtype : torch.dtype, optional
            By default `torch.get_default_dtype()`.
        device : torch.device, optional
            The device of the array.
        batch_shape : sequence of int, optional
            The shape of the stack, by default () for one operator; its members are drawn one after another.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Dense.random(3, dtype=torch.complex64).shape
        (3, 3)
        """
        return cls(Draw(options).haar(check.count("n", n, 1)))
