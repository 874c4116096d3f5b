"""Activations and their gradients."""

import numpy as np

from reference.numbers import wide

NAMES = ("identity", "tanh", "relu", "leaky_relu", "oplu", "oplu_halves", "modrelu", "modrelu_realrep")


def pairs(n, name):
    """The two index lists that OPLU compares."""
    first = np.arange(0, n, 2) if name == "oplu" else np.arange(n // 2)
    return first, first + (1 if name == "oplu" else n // 2)


def on_parts(function, z, *rest):
    """A real activation on the real and the imaginary part separately."""
    if z.dtype.kind != "c":
        return function(z, *rest)
    return function(z.real, *(r.real for r in rest)) + 1j * function(z.imag, *(r.imag for r in rest))


def as_complex(a):
    half = a.shape[-1] // 2
    return a[..., :half] + 1j * a[..., half:]


def as_real(z):
    return np.concatenate([z.real, z.imag], axis=-1)


def activate(z, name, bias=None, slope=0.1):
    z = wide(z)
    if name == "modrelu_realrep":
        return as_real(activate(as_complex(z), "modrelu", bias))
    if name == "modrelu":
        r = np.abs(z)
        active = (r + bias > 0) & (z != 0)
        return np.where(active, (r + bias) * z / np.where(z != 0, r, 1), 0)
    if name in ("oplu", "oplu_halves"):
        i, j = pairs(z.shape[-1], name)

        def sort(a):
            out = a.copy()
            out[..., i], out[..., j] = np.maximum(a[..., i], a[..., j]), np.minimum(a[..., i], a[..., j])
            return out

        return on_parts(sort, z)
    values = {
        "identity": lambda a: a,
        "tanh": np.tanh,
        "relu": lambda a: np.maximum(a, 0),
        "leaky_relu": lambda a: np.maximum(slope * a, a),
    }
    return on_parts(values[name], z)


def activate_vjp(z, name, ct, bias=None, slope=0.1):
    """(z_bar, bias_bar or None)."""
    z, ct = wide(z), wide(ct)
    if name == "modrelu_realrep":
        z_bar, bias_bar = activate_vjp(as_complex(z), "modrelu", as_complex(ct), bias)
        return as_real(z_bar), bias_bar
    if name == "modrelu":
        r = np.abs(z)
        active = (r + bias > 0) & (z != 0)
        r = np.where(active, r, 1)
        e = z / r
        along = np.real(e.conj() * ct)
        z_bar = np.where(active, ct + bias / r * (ct - e * along), 0)
        return z_bar, np.where(active, along, 0).sum(axis=tuple(range(z.ndim - 1)))
    if name in ("oplu", "oplu_halves"):
        i, j = pairs(z.shape[-1], name)

        def unsort(a, g):
            out, swapped = g.copy(), a[..., i] < a[..., j]
            out[..., i] = np.where(swapped, g[..., j], g[..., i])
            out[..., j] = np.where(swapped, g[..., i], g[..., j])
            return out

        return on_parts(unsort, z, ct), None
    slopes = {
        "identity": np.ones_like,
        "tanh": lambda a: 1 - np.tanh(a) ** 2,
        "relu": lambda a: (a > 0).astype(float),
        "leaky_relu": lambda a: np.where(a > 0, 1.0, slope),
    }
    return on_parts(lambda a, g: slopes[name](a) * g, z, ct), None
