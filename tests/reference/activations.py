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
    return of_parts(function(z.real, *(r.real for r in rest)), function(z.imag, *(r.imag for r in rest)))


def of_parts(re, im):
    """re + i im, where a NaN or infinite part leaves the other as it is."""
    z = np.empty(re.shape, np.complex128)
    z.real, z.imag = re, im
    return z


def as_complex(a):
    half = a.shape[-1] // 2
    return of_parts(a[..., :half], a[..., half:])


def as_real(z):
    return np.concatenate([z.real, z.imag], axis=-1)


def direction(z, r):
    """e = z / r; the direction of a complex number with a part that is NaN or infinite is NaN."""
    if z.dtype.kind != "c":
        return np.where(np.isnan(z), z, np.sign(z))
    r = np.where(r > 0, r, np.where(r == 0, 1, np.nan))
    return np.where(np.isfinite(z), z, complex(np.nan, np.nan)) / np.where(np.isfinite(r), r, 1)


def closed(z, r, bias):
    """Where modReLU is 0; |z| + b of NaN is not."""
    return (r + bias <= 0) | ((z == 0) & ~np.isnan(bias))


def elementwise(name, slope):
    """A function of real numbers, and its derivative; that of NaN is NaN."""
    return {
        "identity": (lambda a: a, np.ones_like),
        "tanh": (np.tanh, lambda a: 1 - np.tanh(a) ** 2),
        "relu": (lambda a: np.maximum(a, 0), lambda a: (a > 0).astype(float)),
        "leaky_relu": (lambda a: np.where(a > 0, a, slope * a), lambda a: np.where(a > 0, 1.0, slope)),
    }[name]


def activate(z, name, bias=None, slope=0.1):
    z = wide(z)
    if name == "modrelu_realrep":
        return as_real(activate(as_complex(z), "modrelu", bias))
    if name == "modrelu":
        r = np.abs(z)
        return np.where(closed(z, r, bias), 0, (r + bias) * direction(z, r))
    if name in ("oplu", "oplu_halves"):
        i, j = pairs(z.shape[-1], name)

        def sort(a):
            out = a.copy()
            out[..., i], out[..., j] = np.maximum(a[..., i], a[..., j]), np.minimum(a[..., i], a[..., j])
            return out

        return on_parts(sort, z)
    return on_parts(elementwise(name, slope)[0], z)


def activate_vjp(z, name, ct, bias=None, slope=0.1):
    """(z_bar, bias_bar or None)."""
    z, ct = wide(z), wide(ct)
    if name == "modrelu_realrep":
        z_bar, bias_bar = activate_vjp(as_complex(z), "modrelu", as_complex(ct), bias)
        return as_real(z_bar), bias_bar
    if name == "modrelu":
        r = np.abs(z)
        off, e = closed(z, r, bias), direction(z, r)
        e = np.where(np.isnan(r + bias), np.nan, e)
        along = np.real(e.conj() * ct)
        z_bar = np.where(off, 0, ct + bias / np.where(off, 1, r) * (ct - e * along))
        return z_bar, np.where(off, 0, along).sum(axis=tuple(range(z.ndim - 1)))
    if name in ("oplu", "oplu_halves"):
        i, j = pairs(z.shape[-1], name)

        def unsort(a, g):
            out, swapped = g.copy(), a[..., i] < a[..., j]
            lost = np.isnan(a[..., i]) | np.isnan(a[..., j])
            out[..., i] = np.where(lost, np.nan, np.where(swapped, g[..., j], g[..., i]))
            out[..., j] = np.where(lost, np.nan, np.where(swapped, g[..., i], g[..., j]))
            return out

        return on_parts(unsort, z, ct), None
    value, derivative = elementwise(name, slope)
    lost = lambda a: np.isnan(value(a)) & (name != "identity")
    return on_parts(lambda a, g: np.where(lost(a), np.nan, derivative(a) * g), z, ct), None
