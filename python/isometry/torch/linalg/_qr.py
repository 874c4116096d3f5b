"""The QR factorisation, in LAPACK's storage and as two matrices."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ..._rules import check_linalg
from ..operators._operator import tensor
from ._out import written
from ._plans import call
from ._reflectors import folded, householder_product, ormqr


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


class QR(NamedTuple):
    """The result of `qr`, with the names of torch's."""

    Q: Tensor
    R: Tensor


def qr(A: Tensor, mode: Literal["reduced", "complete"] = "reduced", *, out: tuple[Tensor, Tensor] | None = None) -> QR:
    """The QR factorisation A = Q R, as `torch.linalg.qr`, for a batch on all threads; differentiable.

    Parameters
    ----------
    A : Tensor, shape (*, m, n)
        Real or complex.
    mode : {"reduced", "complete"}
        "reduced": Q has k = min(m, n) columns and R as many rows. "complete": Q is square.
    out : tuple of Tensor, optional
        Tensors for the two results, where no gradient is recorded.

    Returns
    -------
    Q : Tensor, shape (*, m, k), or (*, m, m) if complete
        Orthonormal columns.
    R : Tensor, shape (*, k, n), or (*, m, n) if complete
        Zero below the diagonal.

    Raises
    ------
    ValueError
        If A has fewer than two axes, or mode is another.
    RuntimeError
        If a gradient is to be recorded of a complete factorisation with m > n, as in torch, since the columns of Q that
        A does not determine are arbitrary; or if out is given and a gradient is to be recorded.

    Notes
    -----
    `geqrf`, with its signs and its derivatives: the diagonal of R is real, and the gradient needs no inverse of R.
    Costs n^2 (m - n / 3) multiply-adds for m >= n, and 2 m n^2 more for Q, or 2 m^2 n if complete.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> q, r = it.linalg.qr(torch.tensor([[3.0], [4.0]]))
    >>> q.round(decimals=4), r
    (tensor([[-0.6000],
            [-0.8000]]), tensor([[-5.]]))
    """
    x = tensor("A", A)
    shape = tuple(x.shape)
    check_linalg.factored("A", shape, mode)
    m, n = shape[-2:]
    if mode == "complete" and m > n and torch.is_grad_enabled() and x.requires_grad:
        check_linalg.no_gradient_of_complete("A", shape)
    factors, tau = geqrf(x)
    k = min(m, n)
    if mode == "complete":
        q = ormqr(factors[..., :k], tau, torch.eye(m, dtype=x.dtype, device=x.device))
        r = factors.triu()
    else:
        q, r = householder_product(factors[..., :k], tau), factors[..., :k, :].triu()
    return QR(*((q, r) if out is None else written(out, (q, r), (x,))))
