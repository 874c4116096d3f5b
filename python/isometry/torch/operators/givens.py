"""`Givens` on tensors; the definition stands in `isometry._objects.givens`."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from ..._objects import givens
from ..._objects.givens import GIVENS, Sized
from ..formulas import givens as formula
from ._declared import Declared
from ._random import Draw, Drawing, stackable


class Givens(Sized, Declared, declaration=GIVENS, matrix=formula.matrix, apply=formula.apply):
    """A product of plane rotations at chosen pairs of coordinates.

    W = G_1 G_2 ... G_m, and G_m acts first. G_k rotates the plane of the coordinates (i, j) = pairs[k] by theta =
    angles[k],

    y_i = cos(theta) x_i - sin(theta) x_j,   y_j = sin(theta) x_i + cos(theta) x_j,

    and leaves the others. W is a rotation, det W = 1, for all angles.

    Use it for rotations in planes that you choose: W x costs 6 m operations. Do not use it to reach every rotation:
    that takes n (n-1)/2 pairs, whose products cost more than those with a matrix.

    Parameters
    ----------
    angles : Tensor, shape (*, m)
        Angles in radians, real.
    pairs : Tensor, shape (*, m, 2)
        Integers of 0..n-1, the two of a pair different; not trained. A sequence of integers is taken too. `*` is an
        optional batch shape; those of the arguments broadcast.
    n : int
        Size of W.

    Raises
    ------
    ValueError
        n < 1, angles and pairs of different length, or, if values can be read, a pair with an integer outside 0..n-1
        or two equal ones.
    TypeError
        Angles that are not real, pairs that are not integers.

    See Also
    --------
    Mesh : layers of blocks on disjoint pairs.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    A row costs 6 m flops, its backward 22 m, without an array per rotation: they are undone from the result.

    References
    ----------
    Givens: Computation of plane unitary rotations transforming a general matrix to triangular form, Journal of the
    Society for Industrial and Applied Mathematics 1958.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> op = it.Givens(torch.tensor([torch.pi / 2, torch.pi]), [[0, 1], [1, 3]], n=4)
    >>> op
    Givens(n=4, m=2, dtype=torch.float32)
    >>> op.apply(torch.tensor([1.0, 2.0, 3.0, 4.0])).round()
    tensor([ 2.,  1.,  3., -4.])
    """

    __slots__ = ()

    angles: Tensor
    pairs: Tensor

    def __init__(self, angles: Tensor, pairs: Tensor, *, n: int) -> None:
        self._hold(givens.frame(n), angles, pairs)

    @classmethod
    @stackable
    def random(cls, n: int, m: int, **options: Unpack[Drawing]) -> Givens:
        """Angles uniform on [-pi, pi), pairs uniform among the ordered pairs i != j.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n : int
            Size.
        m : int
            Number of rotations; 0 for n = 1.
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
        >>> it.Givens.random(8, 12, generator=torch.Generator().manual_seed(0))
        Givens(n=8, m=12, dtype=torch.float32)
        """
        draw, (n, m) = Draw(options, "real"), givens.drawn(n, m)
        angles, first, apart = draw.angles(m), draw.integers(0, n, m), draw.integers(1, max(n, 2), m)
        return cls(angles, torch.stack((first, (first + apart) % n), -1), n=n)
