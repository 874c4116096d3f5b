"""`Rotation` on NumPy arrays; the definition is in `isometry._objects.rotation`."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._objects.rotation import ROTATION
from isometry._rules import check
from isometry.operators._declared import Declared
from isometry.operators._random import Draw, Drawing, stackable


class Rotation(Declared, declaration=ROTATION):
    """The rotation of one direction to another, in the plane of both and by the angle between them.

    With ah = start / ||start||, bh = end / ||end|| and w = ah + bh, W = H(w) H(ah) is a product of two reflections
    H(u) = I - 2 u u^T / ||u||^2. W ah = bh, det W = 1, and W is the identity on the complement of the plane.

    Use it to turn one direction into another: W x costs 8 n operations. Do not use it for rotations of more than one
    plane: take `Givens` or `Householder`.

    Parameters
    ----------
    start
        a, real, shape (*, n). Its length does not matter.
    end
        b, real, shape (*, n).

    Attributes
    ----------
    start, end
        The arguments.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    TypeError
        If an array is complex or of an unsupported dtype.

    See Also
    --------
    Givens : planes of coordinates.
    isometry.torch.nn.RUM : the layer with such rotations.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    `*` is an optional batch shape; those of the arguments broadcast against each other. `apply` costs about 10 n
    operations per row and 10 n per pair, `apply_vjp` 30 n per row; `matrix` 8 n^2. Vectors of one direction give the
    identity and the limit of the gradient. If a vector is zero, or n = 1, W is the identity; for opposite directions
    (||ah + bh|| <= 8 eps) it is the rotation by pi in the plane of ah and the first coordinate axis on which |ah| is
    smallest; both cases have zero gradients. Near opposite directions the gradient grows like 1 / ||ah + bh||. A
    complex x is rotated as its real and its imaginary part.

    References
    ----------
    Dangovski, Jing, Nakov, Tatalović, Soljačić: Rotational unit of memory, TACL 2019.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> op = iso.Rotation([2.0, 0.0, 0.0], [0.0, 0.5, 0.0])
    >>> op
    Rotation(n=3, dtype=float64)
    >>> op.apply([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).round(12) + 0.0
    array([[ 0.,  1.,  0.],
           [-1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """

    __slots__ = ()

    start: Array
    end: Array

    def __init__(self, start: ArrayLike, end: ArrayLike) -> None:
        self._hold(start, end)

    @classmethod
    @stackable
    def random(cls, n: int, **options: Unpack[Drawing]) -> Rotation:
        """Draw two Gaussian vectors.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n
            Size of the matrix.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32 or float64.
        batch_shape
            The shape of the stack, () for one operator; its members are drawn one after another.

        Returns
        -------
        Rotation
            Of shape (n, n).

        Raises
        ------
        ValueError
            If n < 1.
        TypeError
            If the dtype is complex or not supported.

        Examples
        --------
        >>> import isometry as iso
        >>> bool(iso.orthogonality_error(iso.Rotation.random(8, rng=0).matrix()) < 20)
        True
        """
        draw, n = Draw(options, "real"), check.count("n", n, 1)
        start, end = draw.rng.standard_normal((2, n)).astype(draw.dtype)
        return cls(start, end)
