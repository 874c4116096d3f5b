"""The Cayley transform of full skew matrices."""

from torch import Tensor

from ..._rules import check
from ..operators._operator import tensor
from ..operators._skew import skew_only
from ..operators.cayley import Cayley


def cayley(a: Tensor) -> Tensor:
    """(I + A)^{-1} (I - A) of skew-symmetric or skew-Hermitian matrices; differentiable.

    Parameters
    ----------
    a : Tensor, shape (*, n, n)
        A = -A^H, each matrix up to sqrt(eps) times its own largest entry; its skew part is used.

    Returns
    -------
    Tensor, shape (*, n, n)
        Orthogonal or unitary.

    Raises
    ------
    ValueError
        If a is not square or, where values can be read, not skew.

    Notes
    -----
    The gradient is skew, as that of a function of skew matrices: a step along it leads to a skew matrix. W is as
    orthogonal as rounding allows for every size of A. Costs about n^3 multiply-adds, the gradient twice as many.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.linalg.cayley(torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    tensor([[ 0., -1.],
            [ 1.,  0.]])
    """
    a = tensor("a", a)
    check.square("a", tuple(a.shape))
    skew_only(a)
    return Cayley.from_skew(0.5 * a - 0.5 * a.adjoint()).matrix()
