"""`Cayley` on NumPy arrays; the definition is in `isometry._objects.cayley`."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from isometry import _core
from isometry._arrays import Array, all_finite, ready, taken, taken_real
from isometry._inverse import cayley as inverse
from isometry._objects._skew import half_turn, of_space, real_upper
from isometry._objects._skew import rotvec as check_rotvec
from isometry._objects.cayley import CAYLEY, FROM_MATRIX
from isometry._objects.cayley import negative_ones as split
from isometry.operators import _quat
from isometry.operators._declared import Declared, promoted
from isometry.operators._inverse import projected
from isometry.operators._random import Draw, Drawing, stackable
from isometry.operators._skew import packed


class Cayley(Declared, declaration=CAYLEY):
    """The scaled Cayley transform of a skew-symmetric or skew-Hermitian matrix.

    W = (I + A)^{-1} (I - A) D is orthogonal or unitary for every A. With signs, every orthogonal matrix is reached with
    all |A[i, j]| <= 1 for some D; with phases, every unitary one.

    Use it for small rotations, and where W, once formed, is applied often: 2 n^2 operations. Do not use it to fit a
    unitary matrix to data: for n = 16 L-BFGS needs 400 to 2,600 iterations, for `Exponential` and `Householder` 150 to
    300.

    Parameters
    ----------
    upper
        The strict upper triangle of A, row by row: A[0, 1], A[0, 2], ..., A[1, 2], ...; shape (*, n(n-1)/2), real or
        complex. An array of shape (3, 3) is a stack of three rotations of R^3, not one A: see `from_skew`.
    diagonal
        Real, shape (*, n): A[j, j] = i diagonal[j]. For a complex `upper` only.
    signs
        D = diag(signs), entries +1 or -1, shape (*, n). Fixed: it has no gradient.
    phases
        D = diag(e^{i phases}), radians, real, shape (*, n). W is complex.

    Attributes
    ----------
    upper, diagonal, signs, phases
        The arguments; None if not given.

    Raises
    ------
    ValueError
        If the shapes do not fit, signs are not +-1, diagonal is given with a real upper, or signs and phases are both
        given.
    TypeError
        If an array has an unsupported dtype, or diagonal, signs or phases is complex.

    See Also
    --------
    Exponential : reaches every rotation, without signs.
    isometry.torch.nn.ScoRNN, isometry.torch.nn.ScuRNN : the layers with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.
    :doc:`rotations` : matrices fitted to data.

    Notes
    -----
    `*` is an optional batch shape; those of the arguments broadcast against each other. Every method forms W first,
    in (8/3) n^3 operations; its gradient costs 4 n^3 (Theorem 3.2 of Helfrich et al. 2018), a row 2 n^2. Complex
    numbers take four times as many. Real rotations of the plane and of space have closed forms, for any angle at the
    same cost.

    For every finite value of the parameters W is orthogonal or unitary, with max|W^H W - I| below 20 n eps, or the
    call that forms it raises a ValueError that names `upper`. The error marks the limit of double precision: if A is
    singular, as every real A of odd n > 3 is, I + A is numerically singular for ||A|| around 1/eps of float64, 4.5e15,
    and beyond.

    `signs` take part in dtype promotion like every array: integers and lists are read as float64, so with them a
    float32 `upper` gives a float64 W.

    References
    ----------
    Helfrich, Willmott, Ye: Orthogonal recurrent neural networks with scaled Cayley transform, ICML 2018.
    Maduranga, Helfrich, Ye: Complex unitary recurrent neural networks using scaled Cayley transform, AAAI 2019.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> iso.Cayley(np.array([1.0])).matrix().round(12) + 0.0
    array([[ 0., -1.],
           [ 1.,  0.]])
    >>> iso.Cayley(np.array([1.0]), signs=np.array([1.0, -1.0])).matrix().round(12) + 0.0
    array([[0., 1.],
           [1., 0.]])
    """

    __slots__ = ()

    upper: Array
    diagonal: Array | None
    signs: Array | None
    phases: Array | None

    def __init__(
        self,
        upper: ArrayLike,
        *,
        diagonal: ArrayLike | None = None,
        signs: ArrayLike | None = None,
        phases: ArrayLike | None = None,
    ) -> None:
        self._hold(upper, diagonal, signs, phases)
        if diagonal is not None and self.upper.dtype.kind != "c":
            real_upper()

    @classmethod
    @stackable
    def random(cls, n: int, *, negative_ones: int | None = None, **options: Unpack[Drawing]) -> Cayley:
        """Draw a scaled Cayley transform of block form (the initialisation of the scoRNN, after Henaff).

        A is zero except for A[2j, 2j+1] = tan(t_j / 2), t_j uniform on [0, pi/2): W D has the eigenvalues e^{+-i
        t_j}.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n
            Size of the matrix.
        negative_ones
            For a real dtype: the number of -1 at the end of D; default n // 2.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32, float64, complex64 or complex128; determines the field. For a complex dtype A has the same real
            entries, a zero diagonal, and D has phases uniform on [0, 2 pi).
        batch_shape
            The shape of the stack, () for one operator; its members are drawn one after another.

        Returns
        -------
        Cayley
            With signs (real) or with diagonal and phases (complex).

        Raises
        ------
        ValueError
            If n or negative_ones is out of range.
        TypeError
            If the dtype is not supported.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.Cayley.random(4, rng=0).signs
        array([ 1.,  1., -1., -1.])
        """
        draw, (n, count) = Draw(options), split(negative_ones, n)
        upper = np.zeros(n * (n - 1) // 2, draw.dtype)
        row = np.arange(0, n - 1, 2)  # A[r, r + 1] is the first element of row r in the packed triangle
        upper[row * n - row * (row + 1) // 2] = np.tan(draw.rng.uniform(0.0, np.pi / 2, len(row)) / 2)
        if draw.dtype.kind == "c":
            phases = draw.rng.uniform(0.0, 2 * np.pi, n).astype(draw.real)
            return cls(upper, diagonal=np.zeros(n, draw.real), phases=phases)
        return cls(upper, signs=np.where(np.arange(n) < n - count, 1, -1).astype(draw.real))

    @classmethod
    def from_matrix(
        cls,
        w: ArrayLike,
        signs: ArrayLike | None = None,
        phases: ArrayLike | None = None,
        *,
        nearest: bool = False,
        tol: float | None = None,
        check_finite: bool = True,
    ) -> Cayley:
        """Recover A (and the last factor, if not given) from an orthogonal or unitary matrix.

        A = 2 (I + W D^{-1})^{-1} - I. Without `signs` and `phases` a last factor is chosen such that |A[i, j]| <= 1
        for all entries up to rounding (O'Dorney; Kahan), which is possible for every matrix. Costs (8/3) n^3
        operations and O(n^2) per flipped sign.

        Parameters
        ----------
        w
            Shape (*, n, n), orthogonal (real) or unitary (complex).
        signs, phases
            The last factor, shape (*, n), at most one of them; its batch shape broadcasts against that of w.
        nearest
            Project w first: `linalg.procrustes`. Then any w will do, and `tol` refuses none.
        tol
            The largest entry of |W^H W - I| that is accepted; default n sqrt(eps).
        check_finite
            Reject NaN and infinity in the arguments.

        Returns
        -------
        Cayley
            With the given last factor, else with signs for a real w and phases for a complex one.

        Raises
        ------
        ValueError
            If w is not square or not orthogonal (unitary) within tol, tol is negative or NaN, or W D^{-1} has the
            eigenvalue -1 for the D given.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> op = iso.Cayley.from_matrix(-np.eye(2))
        >>> op.signs, op.upper
        (array([-1., -1.]), array([0.]))
        """
        w = taken("w", w)
        signs, phases = (None if a is None else taken_real(k, a) for k, a in (("signs", signs), ("phases", phases)))
        _, batch = FROM_MATRIX.check(w.shape, *(None if a is None else a.shape for a in (signs, phases)))
        all_finite(check_finite, w=w, signs=signs, phases=phases)
        if signs is not None:
            _core.operator_check("cayley", (None, None, ready(signs, signs.dtype), None))
        w = projected(w, nearest)
        dtype = promoted(FROM_MATRIX.arguments, [w, signs, phases])
        given: dict[str, Any] = {"signs": signs, "phases": phases}
        return cls(**given | inverse.arguments(w, signs, phases, batch, dtype, tol))

    @classmethod
    def from_skew(cls, a: ArrayLike, *, check_finite: bool = True) -> Cayley:
        """Build the transform from a full skew-symmetric or skew-Hermitian matrix.

        Parameters
        ----------
        a
            A, shape (*, n, n), each matrix A = -A^H up to sqrt(eps) times its own largest entry.
        check_finite
            Reject NaN and infinity in a.

        Returns
        -------
        Cayley
            Without a last factor; with a diagonal if a is complex.

        Raises
        ------
        ValueError
            If a is not square or not skew.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Cayley.from_skew(np.array([[0.0, 2.0], [-2.0, 0.0]])).upper
        array([2.])
        """
        upper, diagonal = packed(a, check_finite)
        return cls(upper, diagonal=diagonal)

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, *, check_finite: bool = True) -> Cayley:
        """The rotation of R^3 about the axis r by the angle |r|, right-handed.

        Parameters
        ----------
        rotvec
            r, shape (*, 3), real.
        check_finite
            Reject NaN and infinity in rotvec.

        Returns
        -------
        Cayley
            Without a last factor, with A x = -tan(|r| / 2) / |r| r cross x, the Rodrigues parameters; W is that of
            `Exponential.from_rotvec`.

        Raises
        ------
        ValueError
            If the last axis of rotvec has other than 3 elements, or |r| is an odd multiple of pi to rounding.
        TypeError
            If rotvec is complex or of an unsupported dtype.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Cayley.from_rotvec([0, 0, np.pi / 2]).apply([1.0, 0.0, 0.0]).round(12) + 0.0
        array([0., 1., 0.])
        """
        r = taken("rotvec", rotvec)
        check_rotvec(r.shape, r.dtype.name)
        all_finite(check_finite, rotvec=r)
        upper = np.empty_like(r, order="C")
        if _core.cayley_from_rotvec(ready(r, r.dtype).reshape(-1, 3), upper.reshape(-1, 3)):
            half_turn()
        return cls(upper)

    def rotvec(self) -> Array:
        """The rotation vector, for n = 3 without signs: the inverse of `from_rotvec`.

        Returns
        -------
        ndarray
            r, shape (*, 3): the axis times the angle |r| < pi, right-handed.

        Raises
        ------
        ValueError
            If n is not 3, or there are signs or phases.
        TypeError
            If the operator is complex.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.Cayley.from_rotvec([0.0, 0.5, 0.0]).rotvec().round(12) + 0.0
        array([0. , 0.5, 0. ])
        """
        of_space(self.shape, self.dtype.kind == "c", self.signs is not None or self.phases is not None)
        u = self.upper
        g = np.stack((u[..., 2], -u[..., 1], u[..., 0]), -1)  # tan(|r| / 2) / |r| r
        size = np.hypot(np.hypot(g[..., :1], g[..., 1:2]), g[..., 2:])
        return g * np.divide(2 * np.arctan(size), size, out=np.full_like(size, 2), where=size > 0)

    @classmethod
    def from_quat(cls, quat: ArrayLike, *, scalar_first: bool = False, check_finite: bool = True) -> Cayley:
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
        Cayley
            Without a last factor; W is that of `Exponential.from_quat`.

        Raises
        ------
        ValueError
            If the last axis of quat does not have 4 elements, a quaternion is zero, or w = 0 (a half turn, which no
            Cayley transform reaches).
        TypeError
            If quat is complex or of an unsupported dtype.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Cayley.from_quat([0, 0, 1, 1]).apply([1.0, 0.0, 0.0]).round(12) + 0.0
        array([0., 1., 0.])
        """
        g = _quat.rodrigues(*_quat.parts(quat, scalar_first, check_finite))
        return cls(np.stack((g[..., 2], -g[..., 1], g[..., 0]), -1))

    def quat(self, *, scalar_first: bool = False) -> Array:
        """The quaternion (x, y, z, w) of length 1 with w >= 0, for n = 3 without signs: the inverse of `from_quat`.

        Parameters
        ----------
        scalar_first
            The order is (w, x, y, z).

        Returns
        -------
        ndarray
            Shape (*, 4).

        Raises
        ------
        ValueError
            If n is not 3, or there are signs or phases.
        TypeError
            If the operator is complex.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.Cayley.from_quat([0, 3.0, 0, -4.0]).quat().round(12) + 0.0
        array([ 0. , -0.6,  0. ,  0.8])
        """
        of_space(self.shape, self.dtype.kind == "c", self.signs is not None or self.phases is not None, "quat")
        u = self.upper
        return _quat.of_rodrigues(np.stack((u[..., 2], -u[..., 1], u[..., 0]), -1), scalar_first)
