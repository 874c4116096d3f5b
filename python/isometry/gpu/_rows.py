"""Activations and the Hadamard transform where an array is on the GPU."""

from typing import Any

from isometry import _core
from isometry._arrays import ready, real_type
from isometry.gpu._array import Array


def activate(z: Any, name: str, bias: Any, slope: float, dtype: Any) -> Array:
    """phi(z)."""
    out = Array.room(z.shape, dtype)
    _core.gpu_activate(_there(z, dtype), name, _bias(bias, dtype), slope, out)
    return out


def activate_vjp(z: Any, name: str, ct: Any, bias: Any, slope: float, dtype: Any) -> tuple[Array, Array | None]:
    """The gradients of z and of the bias, in the dtype of the call."""
    rows, own, cts = _there(z, dtype), _bias(bias, dtype), _there(ct, dtype)
    z_bar, bias_bar = Array.room(z.shape, dtype), None if own is None else Array.like(own)
    _core.gpu_activate_vjp(rows, name, own, slope, cts, z_bar, bias_bar)
    return z_bar, bias_bar


def hadamard_transform(x: Array, scale: float) -> Array:
    """scale sqrt(n) H_n x of every row."""
    out = Array.like(x)
    _core.gpu_hadamard_transform(x, scale, out)
    return out


def _there(a: Any, dtype: Any) -> Any:
    return a if type(a) is Array else Array(ready(a, dtype))


def _bias(bias: Any, dtype: Any) -> Any:
    return None if bias is None else _there(bias, real_type(dtype))
