"""Activations on the last axis: identity, tanh, relu, leaky_relu, oplu, oplu_halves, modrelu, modrelu_realrep.

Complex arrays: all but modReLU act on the real and the imaginary part separately; modReLU keeps the direction of z,

    modrelu(z) = (|z| + b) z / |z| where |z| + b > 0 and z != 0, else 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isometry import _backend, _core, _threads
from isometry._arrays import (
    Array,
    DType,
    common,
    field_of_result,
    finite,
    gradient,
    ready,
    real_type,
    taken,
    taken_real,
)
from isometry._rules import check, check_recurrence
from isometry.gpu import _calls, _rows


def activate(
    z: ArrayLike, name: str, *, bias: ArrayLike | None = None, slope: float = 0.1, check_finite: bool = True
) -> Array:
    """Apply an activation to the last axis of an array.

    ==================  =============================================================================
    name                value
    ==================  =============================================================================
    "identity"          z
    "tanh"              tanh z
    "relu"              max(z, 0)
    "leaky_relu"        max(slope z, z)
    "oplu"              (max, min) of each pair (z[2i], z[2i+1])
    "oplu_halves"       (max, min) of each pair (z[i], z[i + n/2])
    "modrelu"           (abs z + b) z / abs z where abs z + b > 0 and z != 0, else 0
    "modrelu_realrep"   modrelu of a[:n/2] + i a[n/2:] for a real array a, in the same form
    ==================  =============================================================================

    Parameters
    ----------
    z
        Shape (..., n), real or complex. An `isometry.gpu.Array` inside `use_backend("gpu")`: the result is one too.
    name
        One of the names above.
    bias
        b of the modReLU activations, for these only: real, shape (n,), for "modrelu_realrep" (n/2,).
    slope
        Slope of "leaky_relu" for negative z, 0 <= slope < 1.
    check_finite
        Reject NaN and infinity in z and bias.

    Returns
    -------
    numpy.ndarray
        Shape (..., n), a new array.

    Raises
    ------
    ValueError
        For an unknown name, an odd n where pairs are needed, a bias missing, of the wrong length or not applicable, a
        slope out of range, or NaN or infinity under `check_finite`.
    TypeError
        If an array has an unsupported dtype, or the bias is complex.

    Notes
    -----
    Denormal numbers are treated as zero, except in "identity".

    Examples
    --------
    >>> import isometry as iso
    >>> iso.activate([-1.0, 2.0], "leaky_relu")
    array([-0.1,  2. ])
    >>> iso.activate([3 + 4j, 0.1], "modrelu", bias=[-1.0, -1.0])
    array([2.4+3.2j, 0. +0.j ])
    """
    resident = _backend.serve(None) == "gpu" and _calls.resident(z, bias)
    z, bias, dtype = _taken(z, name, bias, slope, check_finite)
    if resident:
        return _rows.activate(z, name, bias, float(slope), dtype)  # type: ignore[return-value]
    if not z.size:
        return np.empty(z.shape, dtype)
    n = z.shape[-1]
    rows, own = ready(z, dtype).reshape(z.size // max(n, 1), n), _own_bias(bias, dtype)
    out = np.empty(rows.shape, dtype)
    _core.activate(rows, name, own, float(slope), out, _threads.get_num_threads())
    return out.reshape(z.shape)


def activate_vjp(
    z: ArrayLike,
    name: str,
    ct: ArrayLike,
    *,
    bias: ArrayLike | None = None,
    slope: float = 0.1,
    check_finite: bool = True,
) -> tuple[Array, Array | None]:
    """Return the gradients of `activate` in z and in the bias, from the gradient in its result.

    Derivatives at kinks: 0 for relu, `slope` for leaky_relu, those of ordered pairs for oplu, 0 where modReLU is 0.

    Parameters
    ----------
    z, name, bias, slope
        As given to `activate`.
    ct
        The cotangent, of the shape of z.
    check_finite
        Reject NaN and infinity in z, ct and bias.

    Returns
    -------
    z_bar : numpy.ndarray
        The gradient of z, in its shape and dtype.
    bias_bar : numpy.ndarray or None
        The gradient of the bias, summed over all rows; None without a bias.

    Raises
    ------
    ValueError
        As for `activate`, and if ct does not have the shape of z.
    TypeError
        As for `activate`, and if ct is complex where z is real.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.activate_vjp([-1.0, 2.0], "relu", [5.0, 7.0])
    (array([0., 7.]), None)
    """
    resident = _backend.serve(None) == "gpu" and _calls.resident(z, ct, bias)
    z, bias, dtype = _taken(z, name, bias, slope, check_finite)
    ct = taken("ct", ct)
    check.exact("ct", ct.shape, z.shape)
    field_of_result("ct", ct, dtype)
    if check_finite:
        finite("ct", ct)
    if not z.size and not resident:
        return np.empty_like(z), None if bias is None else np.zeros_like(bias)
    dtype = common(dtype, ct)
    z_bar: Any
    bias_bar: Any
    if resident:
        z_bar, bias_bar = _rows.activate_vjp(z, name, ct, bias, float(slope), dtype)
    else:
        n = z.shape[-1]
        own = _own_bias(bias, dtype)
        rows, ct_rows = (ready(a, dtype).reshape(a.size // max(n, 1), n) for a in (z, ct))
        z_bar, bias_bar = np.empty_like(rows), None if own is None else np.empty_like(own)
        _core.activate_vjp(rows, name, own, float(slope), ct_rows, z_bar, bias_bar, _threads.get_num_threads())
    own_bias_bar = None if bias is None or bias_bar is None else gradient(bias_bar, bias.shape, bias.dtype)
    return gradient(z_bar.reshape(z.shape), z.shape, z.dtype), own_bias_bar


def _taken(
    z: ArrayLike, name: str, bias: ArrayLike | None, slope: float, check_finite: bool
) -> tuple[Array, Array | None, DType]:
    """z and the bias as arrays, checked, and the dtype of the result."""
    check_finite = check.flag("check_finite", check_finite)
    check_recurrence.activation(name)
    check_recurrence.slope(slope)
    z = taken("z", z)
    bias = None if bias is None else taken_real("bias", bias)
    check_recurrence.activation_input(z.shape)
    check_recurrence.activation_units(
        name, z.shape[-1], None if bias is None else bias.shape, complex_=z.dtype.kind == "c"
    )
    if check_finite:
        finite("z", z)
        finite("bias", bias)
    return z, bias, common(z, bias)


def _own_bias(bias: Array | None, dtype: DType) -> Array | None:
    return None if bias is None else ready(bias, real_type(dtype))
