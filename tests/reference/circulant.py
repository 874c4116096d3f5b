"""The unitary circulant matrix."""

import numpy as np

from reference.numbers import wide


def transform(n):
    """F, the unitary discrete Fourier transform."""
    k = np.arange(n)
    return np.exp(-2j * np.pi * (np.outer(k, k) % n) / n) / np.sqrt(n)


def circulant(phases):
    """W = F^H diag(e^{i phases}) F, one matrix."""
    f = transform(np.shape(phases)[-1])
    return f.conj().T @ np.diag(np.exp(1j * wide(phases))) @ f


def circulant_vjp(w_bar, phases):
    """The gradient of every argument by its name, for the cotangent of W."""
    f = transform(np.shape(phases)[-1])
    return {"phases": np.imag(np.diag(f @ wide(w_bar) @ f.conj().T) * np.exp(-1j * wide(phases)))}
