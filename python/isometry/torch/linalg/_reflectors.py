"""Products of Householder reflections in LAPACK's storage."""

import torch
from torch import Tensor

from ..._rules import check, check_linalg
from .._dispatch.function import COMPLEX_OF, dtype_name
from ..operators._operator import stacked, tensor
from ._out import written
from ._plans import call


def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first k columns of a product of k reflections; differentiable.

    Q = H_1 H_2 ... H_k with H_j = I - tau_j v_j v_j^H, where v_j is the j-th column of A below the diagonal, with a
    one on it. `torch.linalg.householder_product` for any tau, with finite gradients also where a factor has no inverse.

    Parameters
    ----------
    A : Tensor, shape (*, m, k), k <= m
        The vectors, as `geqrf` gives them; the entries on and above the diagonal are not used.
    tau : Tensor, shape (*, k)
        Any numbers. Where there are fewer than k, the missing ones are zero.
    out : Tensor, optional
        A tensor for the result, where no gradient is recorded.

    Returns
    -------
    Tensor, shape (*, m, k)
        Batch shapes broadcast.

    Raises
    ------
    ValueError
        If A has more columns than rows, tau has more than k entries, batch shapes do not broadcast, or out has another
        shape than the result.
    TypeError
        If the precisions differ.
    RuntimeError
        If out is given and a gradient is to be recorded.

    Notes
    -----
    Q = E - V T V_1^H, the compact WY form, with T = (I + D S)^{-1} D, D = diag(tau), S = striu(V^H V): nothing divides
    by tau or by 1 - tau ||v||^2, neither here nor in the gradient. Costs about 2 m k^2 multiply-adds, the gradient
    three times as many; the batch is shared by the threads.

    References
    ----------
    Schreiber, Van Loan: A storage-efficient WY representation for products of Householder transformations, 1989;
    Joffrain, Low, Quintana-Orti, van de Geijn, Van Zee: Accumulating Householder transformations, revisited, 2006.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.linalg.householder_product(torch.tensor([[0.0], [1.0]]), torch.tensor([1.0]))
    tensor([[ 0.],
            [-1.]])
    """
    taken, sizes = _taken(A=A, tau=tau)
    found = call("product", taken)[0].reshape(*sizes.batch, sizes.m, sizes.k)
    return found if out is None else written((out,), (found,), (A, tau))[0]


def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Multiply by a product of reflections, without forming it; differentiable.

    Parameters
    ----------
    input, tau : Tensor, shapes (*, m, k) and (*, k)
        The reflections of `householder_product`; Q is m x m here. Of more than m columns, as `geqrf` gives them for a
        wide matrix, the first m are used.
    other : Tensor, shape (*, m, n), or (*, n, m) with left=False
        The matrices.
    left : bool
        Q other, else other Q.
    transpose : bool
        Q^H in place of Q.
    out : Tensor, optional
        A tensor for the result, where no gradient is recorded.

    Returns
    -------
    Tensor, of the shape of other
        Batch shapes broadcast.

    Raises
    ------
    ValueError
        As for `householder_product`, and if other does not have m rows (columns).
    TypeError
        If the precisions differ.

    Notes
    -----
    other - V T (V^H other). Costs 2 m n k multiply-adds and k^2 (m / 2 + k / 6) for T, the gradient about three times
    as many.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.linalg.ormqr(torch.tensor([[0.0], [1.0]]), torch.tensor([1.0]), torch.eye(2))
    tensor([[ 0., -1.],
            [-1.,  0.]])
    """
    left, transpose = check.flag("left", left), check.flag("transpose", transpose)
    vectors = tensor("input", input)
    if vectors.dim() > 1 and vectors.shape[-1] > vectors.shape[-2]:
        vectors = vectors[..., : vectors.shape[-2]]
    taken, sizes = _taken(left, input=vectors, tau=tau, other=other)
    found = call("apply", taken, left, transpose)[0].reshape(*sizes.batch, *other.shape[-2:])
    return found if out is None else written((out,), (found,), (input, tau, other))[0]


def _taken(left: bool = True, **values: Tensor) -> tuple[tuple[Tensor, ...], check_linalg.Sizes]:
    """The arguments, checked, of one dtype, with no batch axis or one."""
    tensors, (first, *_) = [tensor(name, value) for name, value in values.items()], values
    sizes = check_linalg.reflectors(*[tuple(t.shape) for t in tensors], left=left, name=first)
    a, tau = tensors[:2]
    for name, t in zip(values, tensors, strict=True):
        check.same_precision(name, dtype_name(t.dtype), first, dtype_name(a.dtype))
    if sizes.given < sizes.k:
        tensors[1] = torch.nn.functional.pad(tau, (0, sizes.k - sizes.given))
    if len({t.dtype for t in tensors}) > 1:
        tensors = [t.to(COMPLEX_OF[a.dtype]) for t in tensors]
    return tuple(folded(t, sizes.batch, (2, 1, 2)[i]) for i, t in enumerate(tensors)), sizes


def folded(t: Tensor, batch: tuple[int, ...], tail: int) -> Tensor:
    """The tensor with its batch shape broadcast, and flattened into one axis if there are several."""
    if len(batch) > 1:
        return stacked(t, batch, tail)
    return t if t.dim() == tail + len(batch) and t.shape[: len(batch)] == batch else t.expand(*batch, *t.shape[-tail:])
