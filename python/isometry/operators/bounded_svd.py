"""`BoundedSvd` on NumPy arrays; the definition is in `isometry._objects.bounded_svd`."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._objects.bounded_svd import BOUNDED_SVD, margin_of
from isometry._rules import check
from isometry.operators._declared import Declared
from isometry.operators._random import Draw, Drawing, stackable


class BoundedSvd(Declared, declaration=BOUNDED_SVD):
    """A matrix whose singular values lie within a margin around 1: W = U diag(sigma) V^H.

    sigma_i = 1 + margin tanh(p_i / 2) = (1 - margin) + 2 margin sigmoid(p_i). These are the singular values if U and V
    have orthonormal columns, which the operator does not enforce. With margin 0, or p = 0, W is then orthogonal or
    unitary.

    Use it for a matrix that may be a little off orthogonal: its singular values lie within a margin of 1. Do not use it
    for one that must be orthogonal: U and V are free matrices, and `Householder` or `Cayley` takes n^2 parameters or
    fewer instead of 2 n^2 + n.

    Parameters
    ----------
    u
        U, shape (*, n, r), real or complex.
    logits
        p, real, shape (*, r).
    v
        V, shape (*, k, r), real or complex.
    margin
        A number in [0, 1], fixed.

    Attributes
    ----------
    u, logits, v
        The arguments.
    margin
        The number.

    Raises
    ------
    ValueError
        If the shapes do not fit, or margin is outside [0, 1].
    TypeError
        If an array has an unsupported dtype, logits are complex, or margin is not a number.

    See Also
    --------
    Householder : exactly orthogonal.
    isometry.torch.nn.SoftORNN : the layer with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    `*` is an optional batch shape; those of the arguments broadcast against each other. `apply` costs 2 r (n + k)
    operations per row or, for many rows, 2 n k r once to form W and 2 n k per row; `apply_vjp` twice that; complex
    numbers take four times as many. The gradients of `u` and `v` are those of free matrices.

    References
    ----------
    Vorontsov, Trabelsi, Kadoury, Pal: On orthogonality and learning recurrent networks with long term dependencies,
    ICML 2017.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> op = iso.BoundedSvd(np.eye(3), [-50.0, 0.0, 50.0], np.eye(3), margin=0.25)
    >>> op
    BoundedSvd(n=3, r=3, k=3, dtype=float64)
    >>> op.apply([1.0, 1.0, 1.0])
    array([0.75, 1.  , 1.25])
    """

    __slots__ = ()

    u: Array
    logits: Array
    v: Array
    margin: float

    def __init__(self, u: ArrayLike, logits: ArrayLike, v: ArrayLike, *, margin: float) -> None:
        self._hold(u, logits, v, margin_of(margin))

    @classmethod
    @stackable
    def random(cls, n: int, *, margin: float, **options: Unpack[Drawing]) -> BoundedSvd:
        """Draw Haar-distributed U and V, with zero logits: an orthogonal or unitary matrix.

        Parameters
        ----------
        n
            Size of the matrix.
        margin
            A number in [0, 1].
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32, float64, complex64 or complex128; determines the field.
        batch_shape
            The shape of the stack, () for one operator; its members are drawn one after another.

        Returns
        -------
        BoundedSvd
            Of shape (n, n).

        Raises
        ------
        ValueError
            If n < 1, or margin is outside [0, 1].
        TypeError
            If the dtype is not supported.

        Examples
        --------
        >>> import isometry as iso
        >>> bool(iso.orthogonality_error(iso.BoundedSvd.random(8, margin=0.1, rng=0).matrix()) < 20)
        True
        """
        draw, n = Draw(options), check.count("n", n, 1)
        return cls(draw.haar(n), np.zeros(n, draw.real), draw.haar(n), margin=margin)
