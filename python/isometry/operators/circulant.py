"""`Circulant` on NumPy arrays: constructor, public docstring with an example, `random`, other constructors."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._objects.circulant import CIRCULANT
from isometry._rules import check
from isometry.operators._declared import Declared
from isometry.operators._random import Draw, Drawing, stackable


class Circulant(Declared, declaration=CIRCULANT):
    """The unitary circulant matrix W = F^H diag(e^{i phases}) F, complex.

    (F x)_k = n^{-1/2} sum_j x_j e^{-2 pi i j k / n}. W x is the periodic convolution of x with the first column of W.
    Every unitary matrix that commutes with the periodic shift is such a W.

    Use it for unitary periodic convolutions of long vectors: n parameters, and W x costs of order n log n operations.
    Do not use it for other matrices: it reaches only those that commute with the periodic shift.

    Parameters
    ----------
    phases
        Angles in radians of the eigenvalues, shape (*, n), n >= 1; the k-th belongs to the k-th frequency.

    Attributes
    ----------
    phases
        The argument.

    Raises
    ------
    ValueError
        If the shape does not fit.
    TypeError
        If the array is complex, or has an unsupported dtype.

    See Also
    --------
    FourierProduct : 7 n parameters at the same cost.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    `*` is an optional batch shape. `apply` costs 10 n log2 n + O(n) operations per row for lengths n with small
    factors, some four times as many for others; `apply_vjp` half as many again.

    References
    ----------
    Davis: Circulant matrices, Wiley 1979.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> shift = iso.Circulant(-2 * np.pi * np.arange(4) / 4)
    >>> abs(shift.apply([1.0, 2.0, 3.0, 4.0]).round(6))
    array([4., 1., 2., 3.])
    """

    __slots__ = ()

    phases: Array

    def __init__(self, phases: ArrayLike) -> None:
        self._hold(phases)

    @classmethod
    @stackable
    def random(cls, n: int, **options: Unpack[Drawing]) -> Circulant:
        """Draw the angles.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n
            Size of the matrix.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            complex64 or complex128.
        batch_shape
            The shape of the stack, () for one operator; its members are drawn one after another.

        Returns
        -------
        Circulant
            Of shape (n, n), with phases uniform on [-pi, pi).

        Raises
        ------
        ValueError
            If n < 1.
        TypeError
            If the dtype is not complex.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.Circulant.random(8, rng=0).shape
        (8, 8)
        """
        return cls(Draw(options, "complex").angles(check.count("n", n, 1)))
