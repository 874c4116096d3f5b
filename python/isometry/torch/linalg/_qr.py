"""The QR factorisation in LAPACK's storage."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ..._rules import check_linalg
from ..operators._operator import tensor
from ._out import written
from ._plans import call
from ._reflectors import folded


class Factors(NamedTuple):
    """The result of `geqrf`, with the names of torch's."""

    a: Tensor
    tau: Tensor


def geqrf(input: Tensor, *, out: tuple[Tensor, Tensor] | None = None) -> Factors:
    """The QR factorisation A = Q R, with Q as a product of reflections; differentiable.

    `torch.geqrf`, and so LAPACK's conventions, for a batch on all threads.

    Parameters
    ----------
    input : Tensor, shape (*, m, n)
        The matrices.
    out : tuple of Tensor, optional
        Tensors for the two results, where no gradient is recorded.

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
        If input has fewer than two axes, or out other shapes than the results.
    RuntimeError
        If out is given and a gradient is to be recorded.

    Notes
    -----
    The diagonal of R is real, of the sign opposite to that of the entry it replaces. Tiny and huge columns are scaled.
    The gradient exists where no column is zero below the diagonal, and is finite elsewhere, while the entries of a
    matrix span no more than the exponents of its type; it needs no inverse of R.
    Costs n^2 (m - n / 3) multiply-adds for m >= n, the gradient about four times as many.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> r, tau = it.linalg.geqrf(torch.tensor([[3.0], [4.0]]))
    >>> r, tau
    (tensor([[-5.0000],
            [ 0.5000]]), tensor([1.6000]))
    """
    x = tensor("input", input)
    batch = check_linalg.matrices("input", tuple(x.shape))
    r, tau = call("geqrf", (folded(x, batch, 2),))
    found = r.reshape(x.shape), tau.reshape(*batch, min(x.shape[-2:]))
    return Factors(*(found if out is None else written(out, found, (x,))))
