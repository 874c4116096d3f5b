"""`FourierProduct` on tensors; the definition is in `isometry._objects.fourier`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..._objects.fourier import FOURIER
from ..._rules import check
from .._dispatch.function import COMPLEX_OF, REAL_OF, dtype_name
from ..formulas import fourier as formula
from ._declared import Declared
from ._operator import drawn, stackable


class FourierProduct(Declared, declaration=FOURIER, matrix=formula.matrix, apply=formula.apply):
    """A unitary matrix of 7 n real parameters that costs n log n: W = D3 R2 F^-1 D2 P R1 F D1.

    D_q = diag(e^{i phases[q]}), R_q = I - 2 v v^H / ||v||^2 with v = vectors[q], (P x)_i = x[permutation[i]], and F the
    unitary discrete Fourier transform (`torch.fft.fft` with norm="ortho"). W is unitary for all arguments.

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
    def random(
        cls,
        n: int,
        *,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        batch_shape: Sequence[int] = (),
    ) -> FourierProduct:
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
        given, n = drawn(generator, dtype), check.count("n", n, 1)
        dtype = COMPLEX_OF[given] if dtype is None else given
        check.complex_only("dtype", dtype_name(dtype))
        draw = lambda *shape: 2 * torch.rand(*shape, generator=generator, dtype=REAL_OF[dtype], device=device) - 1
        phases, parts = math.pi * draw(3, n), draw(2, n, 2)
        return cls(phases, torch.view_as_complex(parts), torch.randperm(n, generator=generator, device=device))
