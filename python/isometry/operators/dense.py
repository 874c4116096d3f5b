"""`Dense` on NumPy arrays: any matrix as an operator, W = weight."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._objects.dense import DENSE
from isometry._rules import check
from isometry.operators._declared import Declared
from isometry.operators._random import Draw, Drawing, stackable


class Dense(Declared, declaration=DENSE):
    """A matrix, or a stack of matrices, with the methods of every operator.

    Use it for a matrix that you have, where an operator is expected. Do not use it where a structure makes products
    cheaper than 2 n^2 operations, or where W must stay orthogonal when its numbers are changed.

    Parameters
    ----------
    weight
        W, shape (*, p, q), real or complex, p, q >= 1.

    Attributes
    ----------
    weight
        The argument.

    Raises
    ------
    ValueError
        If the shape does not fit.
    TypeError
        If the array has an unsupported dtype.

    See Also
    --------
    Householder, Cayley : orthogonal for all values of their arguments.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    `apply` costs 2 p q operations per row (8 p q for complex numbers), `apply_vjp` twice that.

    References
    ----------
    Wisdom, Powers, Hershey, Le Roux, Atlas: Full-capacity unitary recurrent neural networks, NIPS 2016, where W itself
    is trained.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> iso.Dense(np.array([[1.0, 2.0], [3.0, 4.0]])).apply([1.0, 1.0])
    array([3., 7.])
    """

    __slots__ = ()

    weight: Array

    def __init__(self, weight: ArrayLike) -> None:
        self._hold(weight)

    @classmethod
    @stackable
    def random(cls, n: int, **options: Unpack[Drawing]) -> Dense:
        """Draw a Haar-distributed orthogonal or unitary matrix.

        Parameters
        ----------
        n
            Size of the matrix.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32, float64, complex64 or complex128; determines the field.
        batch_shape
            The shape of the stack, () for one operator; its members are drawn one after another.

        Returns
        -------
        Dense
            Of shape (n, n).

        Raises
        ------
        ValueError
            If n < 1.
        TypeError
            If the dtype is not supported.

        Examples
        --------
        >>> import isometry as iso
        >>> bool(iso.orthogonality_error(iso.Dense.random(8, rng=0).matrix()) < 20)
        True
        """
        return cls(Draw(options).haar(check.count("n", n, 1)))
