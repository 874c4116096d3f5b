"""`Rotation` on tensors; the definition is in `isometry._objects.rotation`."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from ..._objects.rotation import ROTATION
from ..._rules import check
from ..formulas import rotation as formula
from ._declared import Declared
from ._random import Draw, Drawing, stackable


class Rotation(Declared, declaration=ROTATION, matrix=formula.matrix, apply=formula.apply):
    """The rotation of one direction to another, in the plane of both and by the angle between them.

    W = H(w) H(ah) with ah, bh the vectors of length 1 and w = ah + bh. W ah = bh, det W = 1.

    Use it to turn one direction into another: W x costs 8 n operations. Do not use it for rotations of more than one
    plane: take `Givens` or `Householder`.

    Parameters
    ----------
    start : Tensor, real, shape (*, n)
        Its length does not matter.
    end : Tensor, real, shape (*, n)
        `*` is an optional batch shape; those of both broadcast.

    Raises
    ------
    ValueError
        Shapes that do not fit.
    TypeError
        Complex vectors, or arguments other than tensors of one floating precision.

    See Also
    --------
    Givens : planes of coordinates.
    isometry.torch.nn.RUM : the layer with such rotations.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    Zero vectors, and n = 1, give the identity; opposite directions give a rotation by pi; both cases have zero
    gradients. Vectors of equal direction give the identity, with the limit of the gradient.

    References
    ----------
    Dangovski, Jing, Nakov, Tatalović, Soljačić: Rotational unit of memory, TACL 2019.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> op = it.Rotation(torch.tensor([2.0, 0.0]), torch.tensor([0.0, 1.0]))
    >>> op(torch.tensor([2.0, 0.0])).allclose(torch.tensor([0.0, 2.0]), atol=1e-6)
    True
    """

    __slots__ = ()

    start: Tensor
    end: Tensor

    def __init__(self, start: Tensor, end: Tensor) -> None:
        self._hold(start, end)

    @classmethod
    @stackable
    def random(cls, n: int, **options: Unpack[Drawing]) -> Rotation:
        """Two Gaussian vectors.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n : int
            Size.
        generator : torch.Generator, optional
            Source of the numbers, by default torch's own.
        dtype : torch.dtype, optional
            Real, by default `torch.get_default_dtype()`.
        device : torch.device, optional
            Where the arrays are made.
        batch_shape : sequence of int, optional
            The shape of the stack, by default () for one operator; its members are drawn one after another.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Rotation.random(8, generator=torch.Generator().manual_seed(0))
        Rotation(n=8, dtype=torch.float32)
        """
        start, end = Draw(options, "real").normal(2, check.count("n", n, 1))
        return cls(start, end)
