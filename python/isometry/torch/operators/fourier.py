"""`FourierProduct` on tensors; the definition is in `isometry._objects.fourier`."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from ..._objects.fourier import FOURIER
from ..._rules import check
from ..formulas import fourier as formula
from ._declared import Declared
from ._random import Draw, Drawing, stackable


class FourierProduct(Declared, declaration=FOURIER, matrix=formula.matrix, apply=formula.apply):
    """A unitary matrix of 7 n real parameters that costs n log n: W = D3 R2 F^-1 D2 P R1 F D1.

    D_q = diag(e^{i phases[q]}), R_q = I - 2 v v^H / ||v||^2 with v = vectors[q], (P x)_i = x[permutation[i]], and F the
    unitary discrete Fourier transform (`torch.fft.fft` with norm="ortho"). W is unitary for all arguments.

    Use it for long vectors: 7 n parameters, and W x costs of order n log n operations. Do not use it to reach a given
    unitary matrix: it has 7 n of their n^2 dimensions.

    Parameters
    ----------
    phases : Tensor, shape (*, 3, n)
        The angles of D1, D2, D3, real, n >= 1.
    vectors : Tensor, shape (*, 2, n)
        The reflection vectors of R1, R2, complex; only their directions matter.
    permutation : Tensor, shape (*, n)
        Integers, each of 0..n-1 once; not trained. It may be a sequence of integers. `*` is an
        optional batch shape; those of the arguments broadcast.

    Raises
    ------
    ValueError
        Shapes that do not fit, a zero reflection vector or one whose squared norm overflows, no permutation.
    TypeError
        Phases that are not real, vectors that are not complex, a permutation that is not of integers.

    See Also
    --------
    Circulant : n parameters, the unitary periodic convolutions.
    isometry.torch.nn.URNN : the layer with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.

    References
    ----------
    Arjovsky, Shah, Bengio: Unitary evolution recurrent neural networks, ICML 2016, equation (6).

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> vectors = torch.tensor([[1, 0], [1j, 0]])
    >>> op = it.FourierProduct(torch.zeros(3, 2), vectors, torch.tensor([1, 0]))
    >>> op.apply(torch.tensor([1.0, 2.0])).real.round(decimals=4)
    tensor([2., 1.])
    """

    __slots__ = ()

    phases: Tensor
    vectors: Tensor
    permutation: Tensor

    def __init__(self, phases: Tensor, vectors: Tensor, permutation: Tensor) -> None:
        self._hold(phases, vectors, permutation)

    @classmethod
    @stackable
    def random(cls, n: int, **options: Unpack[Drawing]) -> FourierProduct:
        """Phases uniform on [-pi, pi), parts of the vectors uniform on [-1, 1), a uniform permutation.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n : int
            Size.
        generator : torch.Generator, optional
            Source of the numbers, by default torch's own.
        dtype : torch.dtype, optional
            Complex; by default the complex type of `torch.get_default_dtype()`.
        device : torch.device, optional
            Where the arrays are made.
        batch_shape : sequence of int, optional
            The shape of the stack, by default () for one operator; its members are drawn one after another.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.FourierProduct.random(8, generator=torch.Generator().manual_seed(0))
        FourierProduct(n=8, dtype=torch.complex64)
        """
        draw, n = Draw(options, "complex"), check.count("n", n, 1)
        phases, parts = draw.angles(3, n), draw.uniform(2, n, 2)
        permutation = torch.randperm(n, generator=draw.generator, device=draw.device)
        return cls(phases, torch.view_as_complex(parts), permutation)
