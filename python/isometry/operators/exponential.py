"""`Exponential` on NumPy arrays; the definition is in `isometry._objects.exponential`."""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from isometry._arrays import FLOAT64, Array, finite, real_type, taken
from isometry._objects._skew import real_upper
from isometry._objects._skew import rotvec as check_rotvec
from isometry._objects.exponential import EXPONENTIAL
from isometry._rules import check
from isometry.operators._declared import Declared
from isometry.operators._random import Seed, field, generator

__all__ = ["Exponential"]


class Exponential(Declared, declaration=EXPONENTIAL):
    """The exponential of a skew-symmetric or skew-Hermitian matrix.

    W = exp(A) is orthogonal or unitary for every A: a rotation, of determinant 1, for a real A; every unitary matrix
    is reached by some complex A.

    Parameters
    ----------
    upper
        The strict upper triangle of A, row by row: A[0, 1], A[0, 2], ..., A[1, 2], ...; shape (*, n(n-1)/2), real or
        complex; A[j, i] = -conj(A[i, j]). An array of shape (3, 3) is a stack of three rotations of R^3, not one A.
    diagonal
        Real, shape (*, n): A[j, j] = i diagonal[j]. For a complex `upper` only.

    Attributes
    ----------
    upper, diagonal
        The arguments; None if not given.

    Raises
    ------
    ValueError
        If the shapes do not fit, or diagonal is given with a real upper.
    TypeError
        If an array has an unsupported dtype, or diagonal is complex.

    Notes
    -----
    `*` is an optional batch shape; those of the arguments broadcast against each other. Every method forms W first, by
    scaling and squaring in about 2 (2 + s) n^3 operations, s = max(0, log2(||A|| / 0.66)) rounded up, and its exact
    gradient in about 2 (8 + 2.5 s) n^3; double precision takes 1 and 5 products more. A row costs 2 n^2. Complex
    numbers take four times as many.

    For all finite values W is orthogonal or unitary, max|W^H W - I| below 20 n eps; its angles are accurate to about
    ||A|| eps.

    References
    ----------
    Lezcano-Casado, Martinez-Rubio: Cheap orthogonal constraints in neural networks, ICML 2019.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> iso.Exponential(np.array([np.pi / 2])).matrix().round(12) + 0.0
    array([[ 0.,  1.],
           [-1.,  0.]])
    """

    __slots__ = ()

    upper: Array
    diagonal: Array | None

    def __init__(self, upper: ArrayLike, *, diagonal: ArrayLike | None = None) -> None:
        self._hold(upper, diagonal)
        if diagonal is not None and self.upper.dtype.kind != "c":
            real_upper()

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, *, check_finite: bool = True) -> "Exponential":
        """The rotation of R^3 about the axis r by the angle |r|, right-handed.

        Parameters
        ----------
        rotvec
            r, shape (*, 3), real.
        check_finite
            Reject NaN and infinity in rotvec.

        Returns
        -------
        Exponential
            With A x = r cross x: upper = (-r_3, r_2, -r_1).

        Raises
        ------
        ValueError
            If the last axis of rotvec has other than 3 elements.
        TypeError
            If rotvec is complex or of an unsupported dtype.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Exponential.from_rotvec([0, 0, np.pi / 2]).apply([1.0, 0.0, 0.0]).round(12) + 0.0
        array([0., 1., 0.])
        """
        r = taken("rotvec", rotvec)
        check_rotvec(r.shape, r.dtype.name)
        if check.flag("check_finite", check_finite):
            finite("rotvec", r)
        return cls(np.stack((-r[..., 2], r[..., 1], -r[..., 0]), -1))

    @classmethod
    def random(cls, n: int, *, rng: Seed = None, dtype: DTypeLike = FLOAT64) -> "Exponential":
        """Draw an exponential of block form (the initialisation of the expRNN, after Henaff).

        A is zero except for A[2j, 2j+1] = t_j, uniform on [-pi, pi): W has the eigenvalues e^{+-i t_j}.

        Parameters
        ----------
        n
            Size of the matrix.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32, float64, complex64 or complex128; determines the field. A complex A has the same real entries and
            a zero diagonal.

        Returns
        -------
        Exponential
            With a diagonal if complex.

        Raises
        ------
        ValueError
            If n is less than 1.
        TypeError
            If the dtype is not supported.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.Exponential.random(3, rng=0).upper.round(3)
        array([0.861, 0.   , 0.   ])
        """
        dtype, rng = field(dtype), generator(rng)
        n = check.count("n", n, 1)
        upper = np.zeros(n * (n - 1) // 2, dtype)
        row = np.arange(0, n - 1, 2)  # A[r, r + 1] is the first element of row r in the packed triangle
        upper[row * n - row * (row + 1) // 2] = rng.uniform(-np.pi, np.pi, len(row))
        return cls(upper, diagonal=np.zeros(n, real_type(dtype)) if dtype.kind == "c" else None)
