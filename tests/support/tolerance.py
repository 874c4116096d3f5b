"""All tolerances: how far two results may differ, as epsilon of the type times a stated growth.

Growth laws, observed constants rounded up: one operator applied to a row loses a few eps per factor, and the errors
of independent factors add (SAFETY x factors x eps); a gradient passes the same factors twice more and sums over rows;
a recurrence adds its steps. The relative error is in Frobenius norm, with a floor for quantities that cancel to zero.
"""

import os

import numpy as np

import place

ROUGH = 2.0 if "arithmetic" in os.environ.get("ISOMETRY_GPU_PROOF", "") else 1.0  # the worst that WGSL permits
SAFETY = 16.0 * ROUGH
FLOOR = 0.03  # of the norm of the cotangent: a gradient below it is rounding noise and counts as zero
SLACK = {"f": 1e-3, "d": 1e-7}  # by which entries of A may exceed 1 for a chosen D, after A is recomputed
UNITARITY = 20.0 * ROUGH  # e(W) for every hard parametrisation
TIGHT = 1e-13  # float64 values known by hand
DIFFERENCES = 1e-7  # five-point differences with step 1e-3 in float64, functions of size one


def eps(dtype):
    return float(np.finfo(dtype).eps)


def forward(dtype, factors, condition=1.0):
    """An operator with this many factors, applied once or formed."""
    return SAFETY * eps(dtype) * max(factors, 1) * condition


def gradient(dtype, factors, condition=1.0):
    """One pass back through the same factors: three products where the forward has one."""
    return 4 * forward(dtype, factors, condition)


def sequence(dtype, factors, steps):
    """States after `steps` steps."""
    return forward(dtype, factors) * (1 + steps)


def sequence_gradient(dtype, factors, steps):
    return 4 * sequence(dtype, factors, steps)


def training(dtype, updates):
    """Losses over `updates` small steps of descent: the roundings of the gradients are independent."""
    return SAFETY * eps(dtype) * np.sqrt(updates)


def distance(value, reference, floor=1e-3):
    """||value - reference||_F / max(||reference||_F, floor); infinity for another shape or a NaN."""
    value, reference = np.asarray(value), np.asarray(reference)
    if value.shape != reference.shape:
        return np.inf
    gap = np.linalg.norm((value.astype(complex) - reference.astype(complex)).ravel())
    error = gap / max(np.linalg.norm(reference.ravel()), floor)
    return error if error <= np.inf else np.inf  # NaN compares false


def close(value, reference, tolerance, what="value", floor=1e-3):
    """Assert the shape and the distance; NaN fails."""
    value, reference = np.asarray(value), np.asarray(reference)
    assert value.shape == reference.shape, f"{what} has shape {value.shape}, expected {reference.shape}"
    error = distance(value, reference, floor)
    assert error <= tolerance, f"{what}: relative error {error:.2e} > {tolerance:.1e}"


def identical(value, reference, what="value"):
    """Assert bitwise equality: type, shape and values, none of them NaN.

    Libraries of other devices choose their algorithms by layout and size; there values may differ by rounding, and more
    so the more factors a product has.
    """
    value, reference = np.asarray(value), np.asarray(reference)
    assert value.dtype == reference.dtype, f"{what} is {value.dtype}, expected {reference.dtype}"
    assert value.shape == reference.shape, f"{what} has shape {value.shape}, expected {reference.shape}"
    if place.device != "cpu" and value.dtype.kind in "fc":
        return close(value, reference, 4 * SAFETY * eps(value.dtype), what)
    assert np.array_equal(value, reference), f"{what}: not the same bits, distance {distance(value, reference):.2e}"
