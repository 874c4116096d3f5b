"""`Hadamard` on tensors; the definition is in `isometry._objects.hadamard`."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from ..._objects.hadamard import HADAMARD, ordered
from ..._rules import check
from ..formulas import hadamard as formula
from ._declared import Declared
from ._random import Draw, Drawing, stackable


class Hadamard(Declared, declaration=HADAMARD, matrix=formula.matrix, apply=formula.apply):
    """A product of Hadamard matrices and diagonals of signs, applied by fast transforms.

    W = H_n D_k ... H_n D_1 with D_j = diag(signs_j). H_n is orthogonal with entries +-n^{-1/2}, Sylvester's for a power
    of two, and for n = p 2^k the product H_{2^k} (x) H_p with H_p of Paley's constructions. W is orthogonal if all
    signs are +-1.

    Use it for a random rotation of long vectors: W x costs k n log2 n operations. Do not use it to reach a given
    matrix: its mixtures are fixed, and only their signs vary.

    Parameters
    ----------
    signs : Tensor, real, shape (*, k, n)
        Diagonals, any numbers; the first acts first. `*` is an optional batch shape. n is a power of two, or p 2^k with
        p = 12, 20, 28, 36, 44, 52, ...

    Raises
    ------
    ValueError
        A shape that does not fit, or an n without H_n.
    TypeError
        Complex signs, or other arguments than a tensor of a floating dtype.

    See Also
    --------
    hadamard_transform : one transform.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    `apply` costs k (n log2(n / p) + n p) additions per row, its gradient three times as much. x may be complex.

    References
    ----------
    Paley: On orthogonal matrices, Journal of Mathematics and Physics 1933. Le, Sarlos, Smola: Fastfood, ICML 2013.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> op = it.Hadamard(torch.tensor([[1.0, -1.0, 1.0, 1.0]]))
    >>> op(torch.tensor([0.0, 1.0, 0.0, 0.0]))
    tensor([-0.5000,  0.5000, -0.5000,  0.5000])
    """

    __slots__ = ()

    signs: Tensor

    def __init__(self, signs: Tensor) -> None:
        self._hold(signs)

    @classmethod
    @stackable
    def random(cls, n: int, *, rounds: int = 1, **options: Unpack[Drawing]) -> Hadamard:
        """Signs +-1, each with probability 1/2.

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n : int
            Size, an order of Hadamard matrices.
        rounds : int
            k.
        generator : torch.Generator, optional
            Source of the numbers, by default torch's own.
        dtype : torch.dtype, optional
            Real, by default `torch.get_default_dtype()`.
        device : torch.device, optional
            Where the array is made.
        batch_shape : sequence of int, optional
            The shape of the stack, by default () for one operator; its members are drawn one after another.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Hadamard.random(8, rounds=3, generator=torch.Generator().manual_seed(0))
        Hadamard(k=3, n=8, dtype=torch.float32)
        """
        draw = Draw(options, "real")
        n, rounds = check.count("n", n, 1), check.count("rounds", rounds, 1)
        ordered("signs", n)
        return cls(1 - 2 * draw.integers(0, 2, rounds, n).to(draw.dtype))
