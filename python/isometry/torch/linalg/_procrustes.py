"""The nearest matrix with orthonormal columns, differentiable."""

# ruff: noqa: ARG002  the interface of `Plan`

import math
from typing import Any, Literal, overload

import numpy as np
import torch
from torch import Tensor

from ..._inverse import procrustes as kernels
from ..._rules import check, check_linalg
from .._dispatch.function import dtype_name
from .._dispatch.graph import custom_operators
from .._dispatch.mode import KERNEL, Mode, mode
from .._dispatch.plan import Flags, Out, Plan, Results, Saved, Tensors
from .._dispatch.results import computed
from ..formulas import procrustes as formula
from ..formulas._order import vanishing
from ..operators._operator import tensor
from ._reflectors import folded


@overload
def procrustes(a: Tensor, *, special: bool = False, return_scale: Literal[False] = False) -> Tensor: ...


@overload
def procrustes(a: Tensor, *, special: bool = False, return_scale: Literal[True]) -> tuple[Tensor, Tensor]: ...


def procrustes(a: Tensor, *, special: bool = False, return_scale: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The nearest matrix with orthonormal columns: the polar factor W = U V^H of A = U S V^H; differentiable.

    It minimises the Frobenius norm ||A - W||. For points as rows of P and Q, A = Q^T P gives the rotation that turns
    P into Q, W p_i = q_i (Kabsch; Wahba's problem). `scipy.linalg.orthogonal_procrustes` returns its transpose.

    Parameters
    ----------
    a : Tensor, shape (*, m, n)
        Real or complex. If m < n, the rows of W are orthonormal.
    special : bool
        The nearest rotation, of determinant 1: the column of U that belongs to s_n is negated where det A < 0. For real
        square matrices.
    return_scale : bool
        Return the sum of the singular values too.

    Returns
    -------
    w : Tensor, shape (*, m, n)
        W.
    scale : Tensor, shape (*)
        With `return_scale`, real: <W, A>, the sum of the singular values, the last with the sign of det A under
        `special`. Its gradient is W, and exists where A is not singular.

    Raises
    ------
    ValueError
        If a has fewer than two axes, or for `special` of matrices that are not square.
    TypeError
        For `special` of complex matrices.

    See Also
    --------
    qr : orthonormal columns, not the nearest.
    :doc:`numpy-scipy` : SciPy's names and ours.
    :doc:`rotations` : matrices from points.

    Notes
    -----
    The gradient divides by s_i + s_j, where that of a singular value decomposition divides by s_i - s_j: it is finite
    at orthogonal matrices. Where s_i + s_j is 0 to rounding, the term is left out: the derivative does not exist. Huge
    and tiny matrices neither overflow nor vanish; a matrix with NaN or infinity gives NaN, and other members of a stack
    keep their bits. Matrices of at most 8 rows or columns are decomposed one per lane, larger ones by some six
    iterations of 2 m n^2 + n^3 multiply-adds, and up to thirty where A is singular. The gradient of these takes some
    eight iterations of 2 n^3, and eigenvectors where the condition of A exceeds 64 n or W is not its polar factor.
    Derivatives exist to the second order; those above are NaN.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.linalg.procrustes(torch.tensor([[0.0, 2.0], [-3.0, 0.0]])).round(decimals=5) + 0
    tensor([[ 0.,  1.],
            [-1.,  0.]])
    """
    a, special = tensor("a", a), check.flag("special", special)
    batch = check_linalg.nearest(tuple(a.shape), dtype_name(a.dtype), special=special)
    return_scale = check.flag("return_scale", return_scale)
    how = mode(a)
    w = computed(PROCRUSTES, how, None, (special,), (folded(a, batch, 2),))[0].reshape(a.shape)
    return (w, _scale(w, a, how)) if return_scale else w


def _scale(w: Tensor, a: Tensor, how: Mode) -> Tensor:
    """<W, A>, whose gradient is W itself: the products of W's derivative with A are zero, and are not computed. The
    second term is zero and has the second derivative, half of it in each factor.
    """
    a = a.contiguous()
    fixed = w.detach()
    products = (fixed.conj() * a).real
    if how is not KERNEL:  # which has no derivatives
        apart = a - a.detach()
        products = products + 0.5 * ((w - fixed).conj() * apart).real + vanishing(apart, formula.ORDER)
    return products.sum((-2, -1))


class Procrustes(Plan):
    """Nearest matrices; backward starts from them."""

    rank = 2
    operators = custom_operators("procrustes", "bool special", lambda *settings: (PROCRUSTES, settings))

    def kept(self, settings: Any, results: Tensors) -> Tensors:
        return results

    def run(self, settings: Any, tensors: Tensors, saving: bool, at: Any) -> tuple[Results, Saved]:
        a = _matrices(tensors[0])
        return (torch.from_numpy(kernels.nearest(a, settings[0], at)).reshape(tensors[0].shape),), ()

    def pull(self, settings: Any, tensors: Tensors, out: Out, wanted: Flags, at: Any) -> Tensors:
        (w,), _, (ct,) = out
        found = kernels.pulled(_matrices(tensors[0]), _matrices(w), _matrices(ct), settings[0], at)
        return (torch.from_numpy(found).reshape(tensors[0].shape),)

    def formula(self, settings: Any, *tensors: Any) -> Results:
        return (formula.nearest(*tensors, *settings),)


PROCRUSTES: Plan = Procrustes("Procrustes")


def _matrices(t: Tensor) -> np.ndarray:
    """(nb, m, n), in C order."""
    return np.ascontiguousarray(t.numpy(force=True)).reshape(math.prod(t.shape[:-2]), *t.shape[-2:])
