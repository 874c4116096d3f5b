"""`Givens` on NumPy arrays; the definition stands in `isometry._objects.givens`."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._objects import givens
from isometry._objects.givens import GIVENS, Sized
from isometry.operators._declared import Declared
from isometry.operators._random import Draw, Drawing, stackable


class Givens(Sized, Declared, declaration=GIVENS):
    """A product of plane rotations at chosen pairs of coordinates.

    W = G_1 G_2 ... G_m, and G_m acts first. G_k rotates the plane of the coordinates (i, j) = pairs[k] by theta =
    angles[k],

    y_i = cos(theta) x_i - sin(theta) x_j,   y_j = sin(theta) x_i + cos(theta) x_j,

    and leaves the others. W is a rotation, det W = 1, for all angles.

    Use it for rotations in planes that you choose: W x costs 6 m operations. Do not use it to reach every rotation:
    that takes n (n-1)/2 pairs, whose products cost more than those with a matrix.

    Parameters
    ----------
    angles
        Angles in radians, shape (*, m), real.
    pairs
        Shape (*, m, 2), integers of 0..n-1, the two of a pair different; they are not trained.
    n
        Size of W.

    Attributes
    ----------
    angles, pairs, n
        The arguments.

    Raises
    ------
    ValueError
        If n < 1, angles and pairs differ in length, or a pair has an integer outside 0..n-1 or two equal ones.
    TypeError
        If angles are not real, or pairs not integers.

    See Also
    --------
    Mesh : layers of blocks on disjoint pairs.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    `*` is an optional batch shape; those of the arguments broadcast against each other. `apply` costs 6 m flops per
    row, `apply_vjp` 22 m and no array per rotation: they are undone from the result.

    References
    ----------
    Givens: Computation of plane unitary rotations transforming a general matrix to triangular form, Journal of the
    Society for Industrial and Applied Mathematics 1958.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> op = iso.Givens([np.pi / 2, np.pi], [[0, 1], [1, 3]], n=4)
    >>> op
    Givens(n=4, m=2, dtype=float64)
    >>> op.apply([1.0, 2.0, 3.0, 4.0]).round(12)
    array([ 2.,  1.,  3., -4.])
    """

    __slots__ = ()

    angles: Array
    pairs: Array

    def __init__(self, angles: ArrayLike, pairs: ArrayLike, *, n: int) -> None:
        self._hold(givens.frame(n), angles, pairs)

    @classmethod
    @stackable
    def random(cls, n: int, m: int, **options: Unpack[Drawing]) -> Givens:
        """Draw angles uniformly from [-pi, pi), and pairs uniformly from the ordered pairs i != j.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n
            Size of the matrix.
        m
            Number of rotations; 0 for n = 1.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32 or float64.
        batch_shape
            The shape of the stack, () for one operator; its members are drawn one after another.

        Returns
        -------
        Givens
            Of shape (n, n).

        Raises
        ------
        ValueError
            If n < 1 or m < 0, or m > 0 for n = 1.
        TypeError
            If the dtype is complex or not supported.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.Givens.random(8, 12, rng=0).pairs.shape
        (12, 2)
        """
        draw, (n, m) = Draw(options, "real"), givens.drawn(n, m)
        angles, first, apart = draw.angles(m), draw.rng.integers(n, size=m), draw.rng.integers(1, max(n, 2), size=m)
        return cls(angles, np.stack((first, (first + apart) % n), -1), n=n)
