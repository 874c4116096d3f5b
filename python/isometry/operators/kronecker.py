"""`Kronecker` on NumPy arrays; the definition is in `isometry._objects.kronecker`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from numpy.typing import ArrayLike

from isometry._arrays import Array, all_finite, stacked, taken
from isometry._inverse import kronecker as inverse
from isometry._objects.kronecker import KRONECKER, listed, shapes, sizes
from isometry._rules import check, tolerance
from isometry.operators._declared import Declared
from isometry.operators._random import Draw, Drawing, stackable


class Kronecker(Declared, declaration=KRONECKER):
    """A Kronecker product of matrices, applied factor by factor.

    W = W_0 (x) W_1 (x) ... (x) W_{F-1}, that is
    W[(r_0 .. r_{F-1}), (c_0 .. c_{F-1})] = W_0[r_0, c_0] ... W_{F-1}[r_{F-1}, c_{F-1}] with the index of factor 0
    slowest, as in `numpy.kron`. W is orthogonal or unitary if all factors are.

    Use it for products of small matrices: with factors 2 x 2, W x costs 2 n log2 n operations and W has 8 log2 n
    parameters. Do not use it for other matrices: it reaches no more than such products.

    Parameters
    ----------
    factors
        A sequence of at least one matrix (*, p_f, q_f), p_f, q_f >= 1, real or complex.

    Attributes
    ----------
    factors
        The matrices, a list.

    Raises
    ------
    ValueError
        If there is no factor, one is not a matrix with at least one row and one column, or batch shapes do not fit.
    TypeError
        If factors is not a sequence, or one has an unsupported dtype.

    See Also
    --------
    BlockDiagonal : blocks that do not mix.
    isometry.torch.nn.KRU : the layer with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    `*` is an optional batch shape; those of the factors broadcast against each other. `apply` costs sum_f
    (prod_{g<=f} q_g) (prod_{g>=f} p_g) multiply-adds per row, 2 n log2 n for factors 2 x 2, instead of p q;
    `apply_vjp` three times that. Small neighbouring factors are multiplied out first.

    References
    ----------
    Jose, Cisse, Fleuret: Kronecker recurrent units, ICML 2018.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> hadamard = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2.0)
    >>> op = iso.Kronecker([hadamard] * 2)
    >>> op
    Kronecker(factors=[(2, 2), (2, 2)], dtype=float64)
    >>> op.apply([1.0, 0.0, 0.0, 0.0]).round(12)
    array([0.5, 0.5, 0.5, 0.5])
    """

    __slots__ = ()

    factors: list[Array]

    def __init__(self, factors: Sequence[ArrayLike]) -> None:
        self._hold(*listed(factors))

    @classmethod
    def from_matrix(
        cls,
        w: ArrayLike,
        factor_sizes: Sequence[int | tuple[int, int]] | None = None,
        *,
        tol: float | None = None,
        check_finite: bool = True,
    ) -> Kronecker:
        """Recover the factors of a Kronecker product: the nearest ones, split off one after the other.

        Each is found by a singular value decomposition of W, rearranged to p_f q_f rows.

        Parameters
        ----------
        w
            Shape (*, p, q), real or complex.
        factor_sizes
            The shapes (p_f, q_f) of the factors, or the sizes of square ones; their product is (p, q). Default, for a
            square w: its prime factors.
        tol
            The largest ||W - product||_F / ||W||_F that is accepted; default sqrt(eps).
        check_finite
            Reject NaN and infinity in w; without it they are still refused.

        Returns
        -------
        Kronecker
            With orthogonal or unitary factors if w is orthogonal or unitary. A scale is spread over the factors, a sign
            or phase is in the last one.

        Raises
        ------
        ValueError
            If w is no such product within tol (the message gives the distance), the sizes do not fit, or tol is
            negative or NaN.

        References
        ----------
        Van Loan, Pitsianis: Approximation with Kronecker products, 1993.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> w = np.kron([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, -1.0]])
        >>> op = iso.Kronecker.from_matrix(w, [2, 2])
        >>> np.allclose(op.matrix(), w)
        True
        """
        w = taken("w", w)
        batch = check.stack("w", w.shape, 2, "(*, p, q)")
        found = shapes(w.shape[-2], w.shape[-1], factor_sizes)
        all_finite(check_finite, w=w)
        bound = tolerance.share(tol, w.dtype.name)
        factors = inverse.arguments(stacked(w, 2, batch, w.dtype), found, bound)
        return cls([f.reshape(*batch, *size) for f, size in zip(factors, found, strict=True)])

    @classmethod
    @stackable
    def random(cls, n: int, *, factor_sizes: Sequence[int] | None = None, **options: Unpack[Drawing]) -> Kronecker:
        """Draw Haar-distributed orthogonal or unitary factors.

        Parameters
        ----------
        n
            Size of the matrix.
        factor_sizes
            Sizes of the square factors, whose product is n; default: the prime factors of n.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32, float64, complex64 or complex128; determines the field.
        batch_shape
            The shape of the stack, () for one operator; its members are drawn one after another.

        Returns
        -------
        Kronecker
            Of shape (n, n).

        Raises
        ------
        ValueError
            If n < 1, or the sizes do not multiply up to n.
        TypeError
            If the dtype is not supported.

        Examples
        --------
        >>> import isometry as iso
        >>> [factor.shape for factor in iso.Kronecker.random(12, rng=0).factors]
        [(2, 2), (2, 2), (3, 3)]
        """
        draw = Draw(options)
        return cls([draw.haar(size) for size in sizes(n, factor_sizes)])
