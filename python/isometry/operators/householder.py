"""`Householder` on NumPy arrays; the definition is in `isometry._objects.householder`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from isometry._arrays import FLOAT64, Array, taken_real
from isometry._inverse import householder as inverse
from isometry._objects.householder import HOUSEHOLDER, reflections, trapezoid
from isometry._rules import check, check_expression
from isometry.operators._declared import Declared
from isometry.operators._inverse import matrices, unstacked
from isometry.operators._random import Draw, Drawing, Seed, stackable


class Householder(Declared, declaration=HOUSEHOLDER):
    """A product of Householder reflections with an optional last factor.

    W = H(U[:,0]) H(U[:,1]) ... H(U[:,m-1]) E with H(u) = I - 2 u u^H / ||u||^2; a reflection depends only on the
    direction of its vector. W is orthogonal or unitary, except for |sign| < 1. With m = n - 1 reflections and the
    last factor every orthogonal (sign = +-1) or unitary (phases) matrix is reached.

    Use it for any orthogonal or unitary matrix (m = n), to fit one to data, or with few reflections: W x costs 4 n m
    operations. Do not use it with m above n / 2 where W is applied often and costs count: a formed matrix takes 2 n^2.

    Parameters
    ----------
    vectors
        U, shape (*, n, m), real or complex: the reflection vectors are its columns; m = 0 is allowed, m > n too.
    sign
        s, real, shape (*): E = diag(1, ..., 1, s), s in [-1, 1]. A Python number takes the precision of `vectors`.
    phases
        theta in radians, real, shape (*, n): E = diag(e^{i theta}). W is complex.

    Attributes
    ----------
    vectors, sign, phases
        The arguments; None if not given.

    Raises
    ------
    ValueError
        If the shapes do not fit, a reflection vector is zero or its squared norm overflows or is denormal (its norm
        is outside 1.1e-19..1.8e19 in float32, 1.5e-154..1.3e154 in float64), sign is outside [-1, 1], or sign and
        phases are both given.
    TypeError
        If an array has an unsupported dtype, or sign or phases is complex.

    See Also
    --------
    Cayley, Exponential : a matrix that is formed once.
    isometry.torch.nn.ORNN, isometry.torch.nn.UnitaryORNN : the layers with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.
    :doc:`rotations` : matrices fitted to data.

    Notes
    -----
    `*` is an optional batch shape; those of the arguments broadcast against each other. `apply` on k rows costs about
    4 n m k operations, `matrix` at most 4 n^2 m, `apply_vjp` 8 n m k + 2 n m^2; complex numbers take four times as
    many. The gradients are those of Theorem 2 of Mhammedi et al. 2017 (compact WY form). See `from_trapezoid` for
    the transition of the oRNN.

    References
    ----------
    Mhammedi, Hellicar, Rahman, Bailey: Efficient orthogonal parametrisation of recurrent neural networks using
    Householder reflections, ICML 2017.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> op = iso.Householder(np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 1.0]]))
    >>> op
    Householder(n=3, m=2, dtype=float64)
    >>> y = op.apply([3.0, 4.0, 0.0])
    >>> y.round(12), round(float(np.linalg.norm(y)), 12)
    (array([ 2.4, -3. , -3.2]), 5.0)
    """

    __slots__ = ()

    vectors: Array
    sign: Array | None
    phases: Array | None

    def __init__(self, vectors: ArrayLike, *, sign: ArrayLike | None = None, phases: ArrayLike | None = None) -> None:
        self._hold(vectors, sign, phases)

    @classmethod
    @stackable
    def random(cls, n: int, m: int | None = None, **options: Unpack[Drawing]) -> Householder:
        """Draw a product of reflections.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n
            Size of the matrix.
        m
            Number of reflections, 0 <= m <= n, without a last factor. None: n - 1 reflections and the last factor, sign
            +1 for a real and uniform phases in [-pi, pi) for a complex dtype.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32, float64, complex64 or complex128; determines the field.
        batch_shape
            The shape of the stack, () for one operator; its members are drawn one after another.

        Returns
        -------
        Householder
            With lower-trapezoidal vectors of length 1 whose entries were uniform on [-1, 1).

        Raises
        ------
        ValueError
            If n or m is out of range.
        TypeError
            If the dtype is not supported.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.Householder.random(8, rng=0).vectors.shape
        (8, 7)
        """
        draw, (n, columns) = Draw(options), reflections(m, n)
        vectors = draw.rng.uniform(-1.0, 1.0, (n, columns))
        if draw.dtype.kind == "c":
            vectors = vectors + 1j * draw.rng.uniform(-1.0, 1.0, (n, columns))
        vectors = np.tril(vectors)
        vectors = (vectors / np.linalg.norm(vectors, axis=0)).astype(draw.dtype)
        if m is not None:
            return cls(vectors)
        if draw.dtype.kind == "c":
            return cls(vectors, phases=draw.angles(n))
        return cls(vectors, sign=1.0)

    @classmethod
    def from_matrix(
        cls, w: ArrayLike, *, nearest: bool = False, tol: float | None = None, check_finite: bool = True
    ) -> Householder:
        """Factor an orthogonal or unitary matrix into n - 1 reflections and a last factor.

        Algorithm 2 of Mhammedi et al. 2017 in a form without cancellation; costs (4/3) n^3 operations.

        Parameters
        ----------
        w
            Shape (*, n, n), orthogonal (real) or unitary (complex).
        nearest
            Project w first: `linalg.procrustes`. Then any w will do, and `tol` refuses none.
        tol
            The largest entry of |W^H W - I| accepted; default n sqrt(eps).
        check_finite
            Reject NaN and infinity in w.

        Returns
        -------
        Householder
            Of batch shape (*), with lower-trapezoidal vectors of length 1, and sign +-1 (real) or phases (complex).

        Raises
        ------
        ValueError
            If w is not square or not orthogonal (unitary) within tol, or tol is negative or NaN.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> w = np.array([[0.0, 1.0], [-1.0, 0.0]])
        >>> np.allclose(iso.Householder.from_matrix(w).matrix(), w)
        True
        """
        q, batch, bound = matrices(w, nearest, tol, check_finite)
        return cls(**unstacked(inverse.arguments(q, bound), batch))

    @classmethod
    def haar(
        cls,
        n: int,
        *,
        rng: Seed = None,
        dtype: DTypeLike = FLOAT64,
        batch_shape: Sequence[int] = (),
        special: bool = False,
    ) -> Householder:
        """Draw an orthogonal or unitary matrix from the Haar measure: every one is as likely as any other.

        Its distribution does not change under multiplication by an orthogonal (unitary) matrix. `random` is another
        distribution. The Q of a Gaussian matrix, with a positive diagonal of R; costs some 3 n^3 operations.

        Parameters
        ----------
        n
            Size of the matrix.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32, float64, complex64 or complex128; determines the field.
        batch_shape
            The shape of the stack, () for one operator.
        special
            Only matrices of determinant 1: the groups SO(n) and SU(n).

        Returns
        -------
        Householder
            n - 1 reflections, and a sign (real) or phases (complex).

        Raises
        ------
        ValueError
            If n < 1, or batch_shape has a negative size.
        TypeError
            If the dtype is not supported, or special is no bool.

        References
        ----------
        Mezzadri: How to generate random matrices from the classical compact groups, Notices of the AMS 2007.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.Householder.haar(5, rng=0)
        Householder(n=5, m=4, last='sign', dtype=float64)
        """
        n, batch, special = check.count("n", n, 1), check_expression.batch(batch_shape), check.flag("special", special)
        return cls.from_matrix(Draw({"rng": rng, "dtype": dtype}).haar(n, batch, special))

    @classmethod
    def from_trapezoid(cls, u: ArrayLike, *, sign: Literal["hard", "soft"] = "hard") -> Householder:
        """Build the transition of the oRNN from its trapezoidal array of parameters.

        Column j holds the reflection vector u_{n-j} below j ignored entries. For m = n the last column holds the
        single number u_1 = u[n-1, n-1], which determines the sign of the last factor diag(1, ..., 1, s).

        Parameters
        ----------
        u
            U, real, shape (*, n, m) with 1 <= m <= n; entries with row < column are ignored.
        sign
            For m = n. "hard": s = -1 if u_1 <= 0, else +1; the gradient under `sign` is that of s, to be used for u_1
            (straight-through). "soft": s = u_1, which must lie in [-1, 1].

        Returns
        -------
        Householder
            With min(m, n - 1) vectors and, for m = n, the sign.

        Raises
        ------
        ValueError
            If m is not in 1..n, a column is zero, or a soft sign is outside [-1, 1].
        TypeError
            If u is complex.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Householder.from_trapezoid(np.array([[1.0, 5.0], [0.0, -0.3]])).matrix() + 0.0
        array([[-1.,  0.],
               [ 0., -1.]])
        """
        u = taken_real("u", u)
        n, m = trapezoid(u.shape, sign)
        vectors = np.tril(u)[..., : min(m, n - 1)]
        if m < n:
            return cls(vectors)
        s = u[..., -1, -1].copy()
        if sign == "hard":
            s[...] = np.where(s > 0, 1.0, np.where(s <= 0, -1.0, s))  # NaN is kept and reported by check_finite
        return cls(vectors, sign=s)
