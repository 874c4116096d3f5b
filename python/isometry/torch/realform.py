"""Real forms of complex arrays: z -> [Re z | Im z], W -> [[Re W, -Im W], [Im W, Re W]]."""

import torch
from torch import Tensor

from .._rules import check
from ._dispatch.function import REAL_OF, dtype_name
from .formulas._precision import doubled
from .operators._operator import Operator, tensor


def _complex(name: str, value: Tensor) -> Tensor:
    t = tensor(name, value)
    return t.view_as(t) if t.is_complex() else torch.complex(t, torch.zeros_like(t))  # no leaf: see _skew.packed


def _real(r: Tensor, rank: int) -> Tensor:
    t = tensor("r", r)
    check.real("r", dtype_name(t.dtype))
    check.real_form(tuple(t.shape), rank)
    return t.view_as(t)


def real_matrix(w: Tensor) -> Tensor:
    """The real form [[Re W, -Im W], [Im W, Re W]] of a complex matrix; orthogonal if and only if W is unitary.

    Parameters
    ----------
    w : Tensor, shape (*, p, q)

    Returns
    -------
    Tensor, shape (*, 2 p, 2 q)

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.real_matrix(torch.tensor([[1 + 2j]]))
    tensor([[ 1., -2.],
            [ 2.,  1.]])
    """
    z = _complex("w", w)
    check.stack("w", tuple(z.shape), 2, "(*, p, q)")
    return torch.cat((torch.cat((z.real, -z.imag), -1), torch.cat((z.imag, z.real), -1)), -2)


def real_state(z: Tensor) -> Tensor:
    """The real form [Re z | Im z] of complex states.

    Parameters
    ----------
    z : Tensor, shape (..., n)

    Returns
    -------
    Tensor, shape (..., 2 n)

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.real_state(torch.tensor([1 + 2j]))
    tensor([1., 2.])
    """
    v = _complex("z", z)
    check.stack("z", tuple(v.shape), 1, "(..., n)")
    return torch.cat((v.real, v.imag), -1)


def real_input(v: Tensor) -> Tensor:
    """The real form [Re V; Im V] of a complex input weight, for real input.

    Parameters
    ----------
    v : Tensor, shape (*, n, d)

    Returns
    -------
    Tensor, shape (*, 2 n, d)

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.real_input(torch.tensor([[1 + 2j]]))
    tensor([[1.],
            [2.]])
    """
    w = _complex("v", v)
    check.stack("v", tuple(w.shape), 2, "(*, n, d)")
    return torch.cat((w.real, w.imag), -2)


def complex_matrix(r: Tensor) -> Tensor:
    """The complex matrix of a real form, read from its left half; the inverse of `real_matrix`.

    Parameters
    ----------
    r : Tensor, shape (*, 2 p, 2 q)
        Real.

    Returns
    -------
    Tensor, shape (*, p, q)

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.complex_matrix(torch.tensor([[1.0, -2.0], [2.0, 1.0]]))
    tensor([[1.+2.j]])
    """
    t = _real(r, 2)
    p, q = t.shape[-2] // 2, t.shape[-1] // 2
    return torch.complex(t[..., :p, :q], t[..., p:, :q])


def complex_state(r: Tensor) -> Tensor:
    """The complex states of a real form; the inverse of `real_state`.

    Parameters
    ----------
    r : Tensor, shape (..., 2 n)
        Real.

    Returns
    -------
    Tensor, shape (..., n)

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.complex_state(torch.tensor([1.0, 2.0]))
    tensor([1.+2.j])
    """
    t = _real(r, 1)
    n = t.shape[-1] // 2
    return torch.complex(t[..., :n], t[..., n:])


def orthogonality_error(w: Tensor | Operator) -> Tensor:
    """The distance of a matrix from orthonormal columns, in units of rounding: max |W^H W - I| / (n eps).

    n is the number of columns, eps that of the dtype. The result is of order 1 for an orthogonal W.

    Parameters
    ----------
    w : Tensor, shape (*, p, n), or an operator

    Returns
    -------
    Tensor, shape (*)
        One real value per matrix.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.orthogonality_error(torch.eye(3))
    tensor(0.)
    """
    m = tensor("w", w.matrix() if isinstance(w, Operator) else w)
    check.columns("w", tuple(m.shape))
    n = m.shape[-1]
    # In double precision, so that the rounding of the product does not add to the error it measures.
    # A copy in C order, because other layouts change the order of summation.
    wide = doubled(m).resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    gap = wide.mH @ wide - torch.eye(n, dtype=wide.dtype, device=m.device)
    error = gap.abs().amax((-2, -1)) / (n * torch.finfo(m.dtype).eps)
    lost = error.isnan() & wide.isfinite().flatten(-2).all(-1)  # products that are infinite, and cancel
    return error.masked_fill(lost, torch.inf).to(REAL_OF[m.dtype])
