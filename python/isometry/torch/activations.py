"""The activations of recurrent networks, on elements or on pairs."""

# ruff: noqa: ARG002  the interface of `Plan`

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .. import _core
from .._rules import check_recurrence
from . import formulas
from ._dispatch.function import array, empty, empty_gradients
from ._dispatch.mode import FORMULA, mode
from ._dispatch.plan import Flags, Out, Plan, Results, Rows, Saved, Tensors
from ._dispatch.results import computed
from .operators._operator import real_tensor, tensor


def activate(z: Tensor, name: str, *, bias: Tensor | None = None, slope: float = 0.1) -> Tensor:
    """Apply an activation to the last axis of a tensor, differentiably.

    For complex numbers all activations but modReLU act on the real and the imaginary part separately.

    Parameters
    ----------
    z : Tensor, shape (..., n)
        Real or complex.
    name : str
        "identity"; "tanh"; "relu", max(z, 0); "leaky_relu", max(slope z, z); "oplu", (max, min) of each pair
        (2i, 2i + 1); "oplu_halves", the same for each pair (i, i + n / 2); "modrelu", (|z| + bias) z / |z| where
        |z| + bias > 0, else 0; "modrelu_realrep", modReLU of the complex numbers whose real and imaginary parts are
        the two halves of z.
    bias : Tensor, optional
        The bias of modReLU, real, shape (n,), or (n / 2,) for "modrelu_realrep".
    slope : float
        The slope of "leaky_relu", in [0, 1).

    Returns
    -------
    Tensor, shape (..., n)

    Notes
    -----
    Denormal numbers are treated as zero in the kernels, except in "identity".

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.activate(torch.tensor([-2.0, 3.0]), "modrelu", bias=torch.tensor([-1.0, -1.0]))
    tensor([-1.,  2.])
    """
    z = tensor("z", z)
    check_recurrence.activation(name)
    check_recurrence.slope(slope)
    check_recurrence.activation_input(tuple(z.shape))
    if bias is not None:
        bias = real_tensor("bias", bias, "z", z.dtype, z.device)
    shape = None if bias is None else tuple(bias.shape)
    check_recurrence.activation_units(name, z.shape[-1], shape, complex_=z.is_complex())
    if not z.shape[-1]:  # an empty sum keeps the bias, empty too, in the graph
        return z.clone() if bias is None else z + bias.sum()
    how = mode(z, bias) if z.numel() else FORMULA
    return computed(ACTIVATION, how, None, (name, float(slope)), (z, bias))[0]


class Activation(Plan):
    """phi(z) for z of shape (..., n), from z and the bias; the settings are name and slope."""

    def run(self, settings: Any, tensors: Tensors, saving: bool, at: Any) -> tuple[Results, Saved]:
        (name, slope), (z, bias) = settings, tensors
        n = z.shape[-1]
        out, f = empty(z.shape, z.dtype, -1, n)
        _core.activate(array(z, -1, n), name, bias if bias is None else array(bias), slope, f, at)
        return (out,), ()

    def pull(self, settings: Any, tensors: Tensors, out: Out, wanted: Flags, at: Any) -> Tensors:
        (name, slope), (z, bias), (ct,) = settings, tensors, out[2]
        n = z.shape[-1]
        z_bar, rows_bar = empty(z.shape, z.dtype, -1, n)
        (bias_bar,), (b_bar,) = empty_gradients(wanted[1:], (bias,))
        read = array(z, -1, n), name, bias if bias is None else array(bias), slope, array(ct, -1, n)
        _core.activate_vjp(*read, rows_bar, b_bar, at)
        return z_bar, bias_bar

    def formula(self, settings: Any, *tensors: Any) -> Results:
        (name, slope), (z, bias) = settings, tensors
        return (formulas.activation.activate(z, name, bias, slope),)

    def rows(self, settings: Any, batched: Sequence[int], tensors: Tensors) -> Rows | None:
        return Rows((0, None), (0,), False) if list(batched) == [0] else None


ACTIVATION = Activation("Activation")
