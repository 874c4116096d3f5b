"""`BoundedSvd` on tensors; the definition is in `isometry._objects.bounded_svd`."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from ..._objects.bounded_svd import BOUNDED_SVD, margin_of
from ..._rules import check
from ..formulas import bounded_svd as formula
from ._declared import Declared
from ._random import Draw, Drawing, stackable


class BoundedSvd(Declared, declaration=BOUNDED_SVD, matrix=formula.matrix, apply=formula.apply):
    """A matrix whose singular values lie within a margin around 1: W = U diag(sigma) V^H.

    sigma_i = 1 + margin tanh(logits_i / 2) lies between 1 - margin and 1 + margin.

    These are the singular values if U and V have orthonormal columns, which the operator does not enforce.

    Use it for a matrix that may be a little off orthogonal: its singular values lie within a margin of 1. Do not use it
    for one that must be orthogonal: U and V are free matrices, and `Householder` or `Cayley` takes n^2 parameters or
    fewer instead of 2 n^2 + n.

    Parameters
    ----------
    u : Tensor, shape (*, n, r)
        `*` is an optional batch shape; those of all arguments broadcast.
    logits : Tensor, real, shape (*, r)
        With zeros W = U V^H.
    v : Tensor, shape (*, k, r)
        Of the field of u.
    margin : float
        In [0, 1], fixed.

    Raises
    ------
    ValueError
        Shapes that do not fit, or a margin outside [0, 1].
    TypeError
        Arguments other than tensors of one floating precision and a number.

    See Also
    --------
    Householder : exactly orthogonal.
    isometry.torch.nn.SoftORNN : the layer with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.

    References
    ----------
    Vorontsov, Trabelsi, Kadoury, Pal: On orthogonality and learning recurrent networks with long term dependencies,
    ICML 2017.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> op = it.BoundedSvd(torch.eye(2), torch.tensor([-50.0, 50.0]), torch.eye(2), margin=0.25)
    >>> op.apply(torch.ones(2))
    tensor([0.7500, 1.2500])
    """

    __slots__ = ()

    u: Tensor
    logits: Tensor
    v: Tensor
    margin: float

    def __init__(self, u: Tensor, logits: Tensor, v: Tensor, *, margin: float) -> None:
        self._hold(u, logits, v, margin_of(margin))

    @classmethod
    @stackable
    def random(cls, n: int, *, margin: float, **options: Unpack[Drawing]) -> BoundedSvd:
        """Haar-distributed U and V, and zero logits: an orthogonal or unitary matrix.

        Parameters
        ----------
        n : int
            Size.
        margin : float
            In [0, 1].
        generator : torch.Generator, optional
            Source of the numbers, by default torch's own.
        dtype : torch.dtype, optional
            By default `torch.get_default_dtype()`.
        device : torch.device, optional
            Where the arrays are made.
        batch_shape : sequence of int, optional
            The shape of the stack, by default () for one operator; its members are drawn one after another.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.BoundedSvd.random(8, margin=0.1, generator=torch.Generator().manual_seed(0))
        BoundedSvd(n=8, r=8, k=8, dtype=torch.float32)
        """
        n, draw = check.count("n", n, 1), Draw(options)
        return cls(draw.haar(n), draw.filled(0, n), draw.haar(n), margin=margin)
