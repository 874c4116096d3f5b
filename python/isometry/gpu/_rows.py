"""Activations and the Hadamard transform where an array is on the GPU."""

from typing import Any

from isometry import _core
from isometry._arrays import common, real_type
from isometry._objects.hadamard import of_rows
from isometry._rules import check, check_recurrence
from isometry.gpu._array import Array
from isometry.gpu._calls import DType, own_form, single, uploaded


def activate(z: Any, name: str, bias: Any, slope: float, check_finite: bool) -> Array:
    """phi(z)."""
    z, bias, dtype = _taken(z, name, bias, slope, check_finite)
    return Array.of(_core.gpu_activate(uploaded("z", z, dtype)._handle, name, _own(bias, dtype), float(slope)))


def activate_vjp(z: Any, name: str, ct: Any, bias: Any, slope: float, check_finite: bool) -> tuple[Array, Array | None]:
    """The gradients of z and of the bias."""
    z, bias, dtype = _taken(z, name, bias, slope, check_finite)
    ct = single("ct", ct, check_finite)
    check.exact("ct", ct.shape, z.shape)
    check.field_of_result("ct", ct.dtype.name, dtype.name)
    rows, bars = (uploaded(given, a, dtype)._handle for given, a in (("z", z), ("ct", ct)))
    z_bar, bias_bar = _core.gpu_activate_vjp(rows, name, _own(bias, dtype), float(slope), bars)
    own = None if bias is None or bias_bar is None else own_form(bias_bar, tuple(bias.shape), bias)
    return own_form(z_bar, z.shape, z), own


def hadamard_transform(x: Array, scale: float) -> Array:
    """scale sqrt(n) H_n x of every row."""
    of_rows(x.shape)
    return Array.of(_core.gpu_hadamard_transform(x._handle, scale))


def _taken(z: Any, name: str, bias: Any, slope: float, check_finite: bool) -> tuple[Any, Any, DType]:
    """z and the bias, checked, and the dtype of the result."""
    check_finite = check.flag("check_finite", check_finite)
    check_recurrence.activation(name)
    check_recurrence.slope(slope)
    z = single("z", z, check_finite)
    bias = None if bias is None else single("bias", bias, check_finite)
    if bias is not None and bias.dtype.kind == "c":
        check.real("bias", bias.dtype.name)
    check_recurrence.activation_input(z.shape)
    own = None if bias is None else tuple(bias.shape)
    check_recurrence.activation_units(name, z.shape[-1], own, complex_=z.dtype.kind == "c")
    return z, bias, common(z, bias)


def _own(bias: Any, dtype: DType) -> Any:
    return None if bias is None else uploaded("bias", bias, real_type(dtype))._handle
