"""`Hadamard` on NumPy arrays; the definition is in `isometry._objects.hadamard`."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._objects.hadamard import HADAMARD, ordered
from isometry._rules import check
from isometry.operators._declared import Declared
from isometry.operators._random import Draw, Drawing, stackable


class Hadamard(Declared, declaration=HADAMARD):
    """A product of Hadamard matrices and diagonals of signs, applied by fast transforms.

    W = H_n D_k ... H_n D_1 with D_j = diag(signs_j). H_n is orthogonal with entries +-n^{-1/2}: Sylvester's H_2n =
    [[H_n, H_n], [H_n, -H_n]] / sqrt 2, and for n = p 2^k the product H_{2^k} (x) H_p with H_p of Paley's constructions.
    W is orthogonal if all signs are +-1.

    Use it for a random rotation of long vectors: W x costs k n log2 n operations. Do not use it to reach a given
    matrix: its mixtures are fixed, and only their signs vary.

    Parameters
    ----------
    signs
        Diagonals, real, shape (*, k, n); any numbers. The first acts first. n is a power of two, or p 2^k with
        p = 12, 20, 28, 36, 44, 52, ...

    Attributes
    ----------
    signs
        The argument.

    Raises
    ------
    ValueError
        If the shape does not fit, or there is no H_n.
    TypeError
        If the array is complex or of an unsupported dtype.

    See Also
    --------
    hadamard_transform : one transform.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    `*` is an optional batch shape. `apply` costs k (n log2(n / p) + n p) additions per row, in the first-level cache,
    `apply_vjp` three times as much; `matrix` as `apply` of n rows. An array of p^2 numbers is made in every call.
    x may be complex.

    References
    ----------
    Paley: On orthogonal matrices, Journal of Mathematics and Physics 1933. Le, Sarlos, Smola: Fastfood, ICML 2013.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> op = iso.Hadamard([[1.0, -1.0, 1.0, 1.0]])
    >>> op
    Hadamard(k=1, n=4, dtype=float64)
    >>> op.apply([1.0, 0.0, 0.0, 0.0])
    array([0.5, 0.5, 0.5, 0.5])
    >>> op.apply([0.0, 1.0, 0.0, 0.0])
    array([-0.5,  0.5, -0.5,  0.5])
    """

    __slots__ = ()

    signs: Array

    def __init__(self, signs: ArrayLike) -> None:
        self._hold(signs)

    @classmethod
    @stackable
    def random(cls, n: int, *, rounds: int = 1, **options: Unpack[Drawing]) -> Hadamard:
        """Draw signs +-1, each with probability 1/2: a random rotation, or rotation with a reflection.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n
            Size of the matrix.
        rounds
            k; three rounds are close to a Haar-distributed matrix for most purposes.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32 or float64.
        batch_shape
            The shape of the stack, () for one operator; its members are drawn one after another.

        Returns
        -------
        Hadamard
            Of shape (n, n).

        Raises
        ------
        ValueError
            If n is no order of Hadamard matrices, or rounds < 1.
        TypeError
            If the dtype is complex or not supported.

        Examples
        --------
        >>> import isometry as iso
        >>> bool(iso.orthogonality_error(iso.Hadamard.random(8, rounds=3, rng=0).matrix()) < 20)
        True
        """
        draw = Draw(options, "real")
        n, rounds = check.count("n", n, 1), check.count("rounds", rounds, 1)
        ordered("signs", n)
        return cls((1 - 2 * draw.rng.integers(0, 2, (rounds, n), np.int8)).astype(draw.dtype))
