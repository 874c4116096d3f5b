"""`Circulant` on tensors: constructor, public docstring with an example, `random`, other constructors."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from ..._objects.circulant import CIRCULANT
from ..._rules import check
from ..formulas import circulant as formula
from ._declared import Declared
from ._random import Draw, Drawing, stackable


class Circulant(Declared, declaration=CIRCULANT, matrix=formula.matrix, apply=formula.apply):
    """The unitary circulant matrix W = F^H diag(e^{i phases}) F, complex; F is the unitary discrete Fourier transform.

    W x is the periodic convolution of x with the first column of W.

    Use it for unitary periodic convolutions of long vectors: n parameters, and W x costs of order n log n operations.
    Do not use it for other matrices: it reaches only those that commute with the periodic shift.

    Parameters
    ----------
    phases : Tensor, shape (*, n)
        Angles in radians of the eigenvalues, n >= 1; `*` is an optional batch shape.

    Raises
    ------
    ValueError
        Shapes that do not fit.
    TypeError
        Other arguments than a real tensor of a floating dtype.

    See Also
    --------
    FourierProduct : 7 n parameters at the same cost.
    :doc:`choosing` : all operators, with what they reach and cost.

    References
    ----------
    Davis: Circulant matrices, Wiley 1979.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> shift = it.Circulant(-2 * torch.pi * torch.arange(4) / 4)
    >>> shift.apply(torch.tensor([1.0, 2.0, 3.0, 4.0])).abs().round(decimals=3)
    tensor([4., 1., 2., 3.])
    """

    __slots__ = ()

    phases: Tensor

    def __init__(self, phases: Tensor) -> None:
        self._hold(phases)

    @classmethod
    @stackable
    def random(cls, n: int, **options: Unpack[Drawing]) -> Circulant:
        """Phases uniform on [-pi, pi).

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n : int
            Size.
        generator : torch.Generator, optional
            The random generator, by default torch's own.
        dtype : torch.dtype, optional
            Complex; by default the complex type of `torch.get_default_dtype()`.
        device : torch.device, optional
            The device of the array.
        batch_shape : sequence of int, optional
            The shape of the stack, by default () for one operator; its members are drawn one after another.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Circulant.random(3).shape
        (3, 3)
        """
        return cls(Draw(options, "complex").angles(check.count("n", n, 1)))
