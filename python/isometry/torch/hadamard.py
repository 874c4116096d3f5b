"""The Hadamard transform of rows, differentiable."""

# ruff: noqa: ARG002  the interface of `Plan`

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.autograd.graph import increment_version

from .. import _core
from .._objects.hadamard import of_rows
from .._rules import check, check_out
from ._dispatch.function import HALF, dtype_name, empty, readable, threads
from ._dispatch.graph import custom_operators
from ._dispatch.mode import KERNEL, mode
from ._dispatch.plan import Flags, Out, Plan, Results, Rows, Saved, Tensors
from ._dispatch.results import computed
from .formulas import hadamard as formula
from .operators._operator import tensor


def hadamard_transform(x: Tensor, scale: float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """Multiply every vector in the last axis by a Hadamard matrix, whose entries are +scale and -scale.

    y = scale sqrt(n) H_n x, in Sylvester's order.

    With scale = n ** -0.5 the transform is orthonormal, and for a power of two its own inverse and adjoint.

    Parameters
    ----------
    x : Tensor, shape (..., n)
        Real or complex. float16 and bfloat16 are computed in float32. n is a power of two, or p 2^k with
        p = 12, 20, 28, 36, 44, 52, ... of Paley's constructions.
    scale : float
        A number that multiplies the result.
    out : Tensor, optional
        A tensor for the result, of its shape and dtype, contiguous, on the CPU, apart from x, where no gradient is
        recorded; not for float16 and bfloat16. Large results take two to three times as long without it, since the
        system provides and clears their memory.

    Returns
    -------
    Tensor, shape (..., n)
        `out` or a new tensor, of the dtype of x.

    Raises
    ------
    ValueError
        No matrix of order n (the message names the nearest orders), or an `out` that does not fit.
    TypeError
        x is no tensor of a floating or complex dtype, the scale no real number, or `out` of another dtype.

    Notes
    -----
    n log2(n / p) + n p additions per row, in the first-level cache; the gradient costs as much. Nothing is saved for
    backward. The scale is a number without a gradient.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.hadamard_transform(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10., -2., -4.,  0.])
    """
    half = x.dtype if out is None and isinstance(x, Tensor) and x.dtype in HALF else None
    x = tensor("x", x.float() if half else x)
    scale = check.number("scale", scale)
    of_rows(x.shape)
    if out is not None:
        return _written(x, scale, out)
    y = computed(HADAMARD, mode(x), None, (scale, False), (x,))[0]
    return y.to(half) if half else y


def _written(x: Tensor, scale: float, out: Tensor) -> Tensor:
    if not isinstance(out, Tensor):
        check.kind("out", "a torch.Tensor", out)
    if out.shape != x.shape or out.dtype is not x.dtype:
        check_out.room("out", tuple(out.shape), dtype_name(out.dtype), tuple(x.shape), dtype_name(x.dtype))
    if mode(x, out) is not KERNEL:
        raise ValueError(
            "out must be None in graphs and transforms, on other devices, and where gradients are recorded"
        )
    whole = out.is_contiguous() and not out.is_conj() and not out.is_neg()
    check_out.written("out", whole)
    _core.hadamard_transform(readable(x), scale, False, readable(out), threads())
    if not out.is_inference():  # else autograd takes what it has saved of it for unchanged
        increment_version(out)
    return out


class Hadamard(Plan):
    """The transform, whose gradient is its adjoint's; the settings are the scale and `adjoint`."""

    linear = True

    operators = custom_operators(
        "hadamard_transform", "float scale, bool adjoint", lambda *settings: (HADAMARD, settings)
    )

    def run(self, settings: Any, tensors: Tensors, saving: bool, at: Any) -> tuple[Results, Saved]:
        x, (scale, adjoint) = tensors[0], settings
        out, y = empty(x.shape, x.dtype)
        _core.hadamard_transform(readable(x), scale, adjoint, y, at)
        return (out,), ()

    def pull(self, settings: Any, tensors: Tensors, out: Out, wanted: Flags, at: Any) -> Tensors:
        scale, adjoint = settings
        return self.run((scale, not adjoint), out[2], False, at)[0]

    def by_formula(self, settings: Any, tensors: Tensors, wanted: Flags, cts: Tensors) -> Tensors:
        scale, adjoint = settings
        return self.formula((scale, not adjoint), *cts)

    def formula(self, settings: Any, *tensors: Any) -> Results:
        (x,) = tensors
        return (formula.transform(x, *settings),)

    def rows(self, settings: Any, batched: Sequence[int], tensors: Tensors) -> Rows | None:
        return Rows((0,), (0,), False)


HADAMARD: Plan = Hadamard("Hadamard")
