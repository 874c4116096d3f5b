"""The QR factorisation in LAPACK's storage."""

from __future__ import annotations

from torch import Tensor

from ..._rules import check_linalg
from ..operators._operator import tensor
from ._plans import call
from ._reflectors import folded


def geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    """The QR factorisation A = Q R, with Q as a product of reflections; differentiable.

    `torch.geqrf`, and so LAPACK's conventions, for a batch on all threads.

    Parameters
    ----------
    a : Tensor, shape (*, m, n)
        The matrices.

    Returns
    -------
    a : Tensor, shape (*, m, n)
        R on and above the diagonal, the vectors of the reflections below it, which `householder_product` and `ormqr`
        take.
    tau : Tensor, shape (*, min(m, n))
        H_j = I - tau_j v_j v_j^H. Zero for a column that is its own factor.

    Raises
    ------
    ValueError
        If a has fewer than two axes.

    Notes
    -----
    The diagonal of R is real, of the sign opposite to that of the entry it replaces. Tiny and huge columns are scaled.
    The gradient exists where no column is zero below the diagonal, and is finite everywhere; it needs no inverse of R.
    Costs n^2 (m - n / 3) multiply-adds for m >= n, the gradient about four times as many.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> r, tau = it.linalg.geqrf(torch.tensor([[3.0], [4.0]]))
    >>> r, tau
    (tensor([[-5.0000],
            [ 0.5000]]), tensor([1.6000]))
    """
    a = tensor("a", a)
    batch = check_linalg.matrices("a", tuple(a.shape))
    r, tau = call("geqrf", (folded(a, batch, 2),))
    return r.reshape(a.shape), tau.reshape(*batch, min(a.shape[-2:]))
