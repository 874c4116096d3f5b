"""The activations of recurrent networks, on elements or on pairs."""

from __future__ import annotations

from torch import Tensor

from .._rules import check_recurrence
from . import formulas
from ._activation_function import Activate, activated
from ._mode import KERNEL, RECORDED, mode
from .operators._operator import real_tensor, tensor


def activate(z: Tensor, name: str, *, bias: Tensor | None = None, slope: float = 0.1) -> Tensor:
    """phi(z), differentiable.

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
    how = mode(z, bias)
    if how is KERNEL and z.numel():
        return activated(z, bias, name, float(slope))
    if how is RECORDED and z.numel():
        return Activate.apply(z, bias, name, float(slope))  # type: ignore[no-any-return]
    return formulas.activation.activate(z, name, bias, slope)
