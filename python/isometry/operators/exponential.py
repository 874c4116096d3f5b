"""`Exponential` on NumPy arrays; the definition is in `isometry._objects.exponential`."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, all_finite, taken
from isometry._inverse import exponential as inverse
from isometry._objects._skew import of_space, real_upper
from isometry._objects._skew import rotvec as check_rotvec
from isometry._objects.exponential import EXPONENTIAL
from isometry._rules import check
from isometry.operators import _quat
from isometry.operators._declared import Declared
from isometry.operators._inverse import matrices, unstacked
from isometry.operators._random import Draw, Drawing, stackable
from isometry.operators._skew import packed


class Exponential(Declared, declaration=EXPONENTIAL):
    """The exponential of a skew-symmetric or skew-Hermitian matrix.

    W = exp(A) is orthogonal or unitary for every A: a rotation, of determinant 1, for a real A; every unitary matrix
    is reached by some complex A.

    Use it to fit a rotation or a unitary matrix to data: it reaches all of them. Do not use it for a real matrix of
    determinant -1, which it does not reach, or where W is formed often: `Cayley` takes (8/3) n^3 operations, this at
    least two products of matrices.

    Parameters
    ----------
    upper
        The strict upper triangle of A, row by row: A[0, 1], A[0, 2], ..., A[1, 2], ...; shape (*, n(n-1)/2), real or
        complex; A[j, i] = -conj(A[i, j]). An array of shape (3, 3) is a stack of three rotations of R^3, not one A: see
        `from_skew`.
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

    See Also
    --------
    Cayley : cheaper, and unbounded near the eigenvalue -1.
    isometry.torch.nn.ExpRNN : the layer with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.
    :doc:`rotations` : matrices fitted to data.

    Notes
    -----
    `*` is an optional batch shape; those of the arguments broadcast against each other. Every method forms W first, by
    scaling and squaring in about 2 (2 + s) n^3 operations, s = max(0, log2(||A|| / 0.66)) rounded up, and its exact
    gradient in about 2 (8 + 2.5 s) n^3; double precision takes 1 and 5 products more. A row costs 2 n^2. Complex
    numbers take four times as many. Real rotations of the plane and of space have closed forms.

    For all finite values W is orthogonal or unitary, max|W^H W - I| below 20 n eps; its angles are accurate to about
    ||A|| eps.

    References
    ----------
    Lezcano-Casado, Martínez-Rubio: Cheap orthogonal constraints in neural networks, ICML 2019.

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
    def from_matrix(
        cls, w: ArrayLike, *, nearest: bool = False, tol: float | None = None, check_finite: bool = True
    ) -> Exponential:
        """Recover A, the principal logarithm, from an orthogonal or unitary matrix.

        Its eigenvalues are i angle with |angle| <= pi. Accurate to rounding for all W: exp(A) is W up to some n eps.
        Costs some 50 n^3 operations of NumPy's LAPACK, whose own threads may change the last bits; real rotations of
        the plane and of space have closed forms.

        Parameters
        ----------
        w
            Shape (*, n, n), orthogonal with determinant 1 (real) or unitary (complex).
        nearest
            Project w first, a real one to the nearest rotation: `linalg.procrustes`. Then any w will do, and `tol`
            refuses none.
        tol
            The largest entry of |W^H W - I| that is accepted; default n sqrt(eps).
        check_finite
            Reject NaN and infinity in w.

        Returns
        -------
        Exponential
            With a diagonal if w is complex. If -1 is an eigenvalue, A is one of several with the same norm.

        Raises
        ------
        ValueError
            If w is not square or not orthogonal (unitary) within tol, tol is negative or NaN, or w is real and has the
            determinant -1: then it is no exponential of a real matrix.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Exponential.from_matrix(np.array([[0.0, 1.0], [-1.0, 0.0]])).upper.round(6)
        array([1.570796])
        """
        q, batch, bound = matrices(w, nearest, tol, check_finite, special=True)
        return cls(**unstacked(inverse.arguments(q, bound), batch))

    @classmethod
    def from_skew(cls, a: ArrayLike, *, check_finite: bool = True) -> Exponential:
        """Build the exponential of a full skew-symmetric or skew-Hermitian matrix.

        Parameters
        ----------
        a
            A, shape (*, n, n), each matrix A = -A^H up to sqrt(eps) times its own largest entry.
        check_finite
            Reject NaN and infinity in a.

        Returns
        -------
        Exponential
            With a diagonal if a is complex.

        Raises
        ------
        ValueError
            If a is not square or not skew.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Exponential.from_skew(np.array([[0.0, 2.0], [-2.0, 0.0]])).upper
        array([2.])
        """
        upper, diagonal = packed(a, check_finite)
        return cls(upper, diagonal=diagonal)

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, *, check_finite: bool = True) -> Exponential:
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
        all_finite(check_finite, rotvec=r)
        return cls(np.stack((-r[..., 2], r[..., 1], -r[..., 0]), -1))

    def rotvec(self) -> Array:
        """The rotation vector, for n = 3: the inverse of `from_rotvec`.

        Returns
        -------
        ndarray
            r, shape (*, 3): the axis times the angle |r| <= pi, right-handed.

        Raises
        ------
        ValueError
            If n is not 3.
        TypeError
            If the operator is complex.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Exponential.from_rotvec([0, 0, 2 * np.pi + 1]).rotvec().round(12) + 0.0
        array([0., 0., 1.])
        """
        of_space(self.shape, self.dtype.kind == "c", False)
        u = self.upper
        r = np.stack((-u[..., 2], u[..., 1], -u[..., 0]), -1)
        with np.errstate(over="ignore"):
            far = np.einsum("...i,...i->...", r, r) > np.pi**2
        if not far.any():
            return r
        angle = np.hypot(np.hypot(r[..., :1], r[..., 1:2]), r[..., 2:])
        turns = np.rint(angle / (2 * np.pi))
        whole = np.multiply(turns, 2 * np.pi, dtype=r.dtype)
        return r * np.divide(angle - whole, angle, out=np.ones_like(angle), where=turns > 0)

    @classmethod
    def from_quat(cls, quat: ArrayLike, *, scalar_first: bool = False, check_finite: bool = True) -> Exponential:
        """The rotation of R^3 of a quaternion (x, y, z, w), in SciPy's convention.

        Parameters
        ----------
        quat
            Shape (*, 4), real, of any length but zero; q and -q are one rotation.
        scalar_first
            The order is (w, x, y, z).
        check_finite
            Reject NaN and infinity in quat.

        Returns
        -------
        Exponential
            With A of an angle of at most pi.

        Raises
        ------
        ValueError
            If the last axis of quat does not have 4 elements, or a quaternion is zero.
        TypeError
            If quat is complex or of an unsupported dtype.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Exponential.from_quat([0, 0, 1, 1]).apply([1.0, 0.0, 0.0]).round(12) + 0.0
        array([0., 1., 0.])
        """
        return cls.from_rotvec(_quat.rotvec(*_quat.parts(quat, scalar_first, check_finite)), check_finite=False)

    def quat(self, *, scalar_first: bool = False) -> Array:
        """The quaternion (x, y, z, w) of length 1 with w >= 0, for n = 3: the inverse of `from_quat`.

        Parameters
        ----------
        scalar_first
            The order is (w, x, y, z).

        Returns
        -------
        ndarray
            Shape (*, 4); of half a turn either sign.

        Raises
        ------
        ValueError
            If n is not 3.
        TypeError
            If the operator is complex.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.Exponential.from_quat([0, 3.0, 0, -4.0]).quat().round(12) + 0.0
        array([ 0. , -0.6,  0. ,  0.8])
        """
        of_space(self.shape, self.dtype.kind == "c", False, "quat")
        u = self.upper
        return _quat.of_rotvec(np.stack((-u[..., 2], u[..., 1], -u[..., 0]), -1), scalar_first)

    @classmethod
    @stackable
    def random(cls, n: int, **options: Unpack[Drawing]) -> Exponential:
        """Draw an exponential of block form (the initialisation of the expRNN, after Henaff).

        A is zero except for A[2j, 2j+1] = t_j, uniform on [-pi, pi): W has the eigenvalues e^{+-i t_j}.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n
            Size of the matrix.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32, float64, complex64 or complex128; determines the field. A complex A has the same real entries and
            a zero diagonal.
        batch_shape
            The shape of the stack, () for one operator; its members are drawn one after another.

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
        draw, n = Draw(options), check.count("n", n, 1)
        upper = np.zeros(n * (n - 1) // 2, draw.dtype)
        row = np.arange(0, n - 1, 2)  # A[r, r + 1] is the first element of row r in the packed triangle
        upper[row * n - row * (row + 1) // 2] = draw.rng.uniform(-np.pi, np.pi, len(row))
        return cls(upper, diagonal=np.zeros(n, draw.real) if draw.dtype.kind == "c" else None)
