"""`FourierProduct` on NumPy arrays; the definition is in `isometry._objects.fourier`."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from isometry._arrays import Array
from isometry._objects.fourier import FOURIER
from isometry._rules import check
from isometry.operators._declared import Declared
from isometry.operators._random import Draw, Drawing, stackable


class FourierProduct(Declared, declaration=FOURIER):
    """A unitary matrix of 7 n real parameters that costs n log n: W = D3 R2 F^-1 D2 P R1 F D1.

    D_q = diag(e^{i phases[q]}), R_q = I - 2 v v^H / ||v||^2 with v = vectors[q], (P x)_i = x[permutation[i]], and F the
    unitary discrete Fourier transform, (F x)_k = n^{-1/2} sum_j x_j e^{-2 pi i j k / n}. W is unitary.

    Use it for long vectors: 7 n parameters, and W x costs of order n log n operations. Do not use it to reach a given
    unitary matrix: it has 7 n of their n^2 dimensions.

    Parameters
    ----------
    phases
        Shape (*, 3, n), real, n >= 1: the angles of D1, D2, D3.
    vectors
        Shape (*, 2, n), complex: the reflection vectors of R1, R2; only their directions matter.
    permutation
        Shape (*, n), integers, each of 0..n-1 once; it is not trained.

    Raises
    ------
    ValueError
        If shapes do not fit, a reflection vector is zero or its squared norm overflows, or `permutation` is not one.
    TypeError
        If phases are not real, vectors not complex, or the permutation is not of integers.

    See Also
    --------
    Circulant : n parameters, the unitary periodic convolutions.
    isometry.torch.nn.URNN : the layer with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    `*` is an optional batch shape; those of the arguments broadcast against each other. `apply` costs 10 n log2 n +
    50 n flops per row, `apply_vjp` three times that, for every n: lengths with a prime factor above 31 cost about
    five times those of powers of two. Rows share SIMD vectors: up to 16 rows in single precision (8 in double) cost as
    much as one.

    References
    ----------
    Arjovsky, Shah, Bengio: Unitary evolution recurrent neural networks, ICML 2016, equation (6).

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> op = iso.FourierProduct(np.zeros((3, 2)), np.array([[1, 0], [1j, 0]]), [1, 0])
    >>> op
    FourierProduct(n=2, dtype=complex128)
    >>> bool(np.allclose(op.matrix(), [[0, 1], [1, 0]]))
    True
    """

    __slots__ = ()

    phases: Array
    vectors: Array
    permutation: Array

    def __init__(self, phases: ArrayLike, vectors: ArrayLike, permutation: ArrayLike) -> None:
        self._hold(phases, vectors, permutation)

    @classmethod
    @stackable
    def random(cls, n: int, **options: Unpack[Drawing]) -> FourierProduct:
        """Draw phases, reflection vectors and the permutation.

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
        FourierProduct
            With phases uniform on [-pi, pi), real and imaginary parts of vectors uniform on [-1, 1), and a uniform
            permutation.

        Raises
        ------
        ValueError
            If n < 1.
        TypeError
            If the dtype is not complex.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.FourierProduct.random(6, rng=0).permutation.shape
        (6,)
        """
        draw, n = Draw(options, "complex"), check.count("n", n, 1)
        phases, parts = draw.angles(3, n), [draw.rng.uniform(-1.0, 1.0, (2, n)) for _ in range(2)]
        return cls(phases, (parts[0] + 1j * parts[1]).astype(draw.dtype), draw.rng.permutation(n))
